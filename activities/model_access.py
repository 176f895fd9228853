"""Which model is asked, by whose API and with whose key."""

from dataclasses import dataclass, field
from typing import Literal

Provider = Literal["openai", "anthropic"]


@dataclass(frozen=True)
class ModelAccess:
    """What it takes to ask a model."""

    provider: Provider
    """Whose API is spoken; `openai` stands for every API that is compatible with it."""
    model_name: str
    """The model, by the provider's name."""
    api_key: str = field(repr=False)
    """Shown to nobody but the provider."""
    base_url: str | None = None
    """Where the API is; None for the provider itself."""

    @property
    def key_setting(self) -> str:
        """The setting that holds the key, for whoever has to mend it."""
        return f"{self.provider.upper()}_API_KEY"
