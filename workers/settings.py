"""Settings of worker and command, from the environment: prefix `NORTHWIND_` and two usual names.

The connection to Temporal is not here: the SDK's own `temporalio.envconfig` reads it.
"""

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from domain.models import Address, Identifier

LOCAL = "local"
PRODUCTION = "production"
STRIPE_ITSELF = "stripe"
# What the stand-in company accepts: no secret, and no key of anybody's account.
SANDBOX_STRIPE_KEY = "sk_test_northwind"
SANDBOX_MODEL_KEY = "northwind-stand-in"
SANDBOX_MODEL = "northwind-stand-in-rules"

_SMTP_SCHEMES = ("smtp", "smtp+starttls", "smtps")
_HTTP = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")
# Temporal joins both with a dot, so a deployment's name has none, and keeps `__` for itself.
_DEPLOYMENT = re.compile(r"(?!__)[A-Za-z0-9_-]{1,64}")
_BUILD_ID = re.compile(r"(?!__)[A-Za-z0-9._-]{1,64}")


class SettingsError(ValueError):
    """A setting is missing or wrong; the message is one line that names it and shows no secret."""


def _http_url(url: str) -> str:
    if _HTTP.fullmatch(url) is None:
        raise ValueError("must look like http://host:port or https://host/path")
    return url.rstrip("/")


def _deployment(name: str) -> str:
    if _DEPLOYMENT.fullmatch(name) is None:
        raise ValueError("must be letters, digits, - and _ (64 at most), and not begin with __")
    return name


def _build_id(name: str) -> str:
    if _BUILD_ID.fullmatch(name) is None:
        raise ValueError("must be letters, digits, ., - and _ (64 at most), and not begin with __")
    return name


HttpUrl = Annotated[str, AfterValidator(_http_url)]


def _below_data_dir(name: str) -> Any:
    return Field(default_factory=lambda data: data["data_dir"] / name)


def _below_company(path: str) -> Any:
    return Field(default_factory=lambda data: data["company_url"] + path)


def _usual_model_url(data: dict[str, Any]) -> str:
    """The stand-in company's, which speaks one of the two forms; else the provider itself."""
    return f"{data['company_url']}/v1" if data["model_provider"] == "openai" else ""


class Settings(BaseSettings):
    """Where everything is. The defaults fit `refund up` on one machine."""

    model_config = SettingsConfigDict(
        env_prefix="NORTHWIND_", env_ignore_empty=False, extra="ignore", frozen=True
    )

    environment: Identifier = LOCAL
    """Part of every key; a run of another environment is refused."""
    data_dir: Path = Path(".northwind")
    keys_dir: Path = _below_data_dir("keys")
    """Private keys by which the command signs, one `<address>.pem` for each person."""

    company_url: HttpUrl = "http://127.0.0.1:8700"
    """Orders, staff directory and policy."""

    smtp_url: SecretStr = SecretStr("smtp://127.0.0.1:8725")
    """`smtp://`, `smtps://` (TLS from the start) or `smtp+starttls://`, with `user:password@`."""
    mail_from: Address = "refunds@northwind.example"
    operations: Address = "refund-operations@northwind.example"
    """Who hears of an alert when the policy, which names them, could not be read."""

    payments_url: Literal["", "stripe"] | HttpUrl = _below_company("")
    """Where Stripe's API is; empty or `stripe` for Stripe itself."""
    stripe_api_key: SecretStr | None = Field(default=None, validation_alias="STRIPE_API_KEY")

    model_provider: Literal["openai", "anthropic"] = "openai"
    """Whose API the model speaks; `openai` is every API that is compatible with it."""
    model_name: str = ""
    """By the provider's name; empty for the stand-in company's."""
    model_base_url: Literal[""] | HttpUrl = Field(default_factory=_usual_model_url)
    """Where the model's API is; empty for the provider itself."""
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias="ANTHROPIC_API_KEY")

    ledger_url: SecretStr = Field(
        default_factory=lambda data: SecretStr(f"sqlite:///{data['data_dir'] / 'ledger.db'}")
    )
    """SQLAlchemy's URL: SQLite for workers on one machine, PostgreSQL where several share it."""

    deployment: Literal[""] | Annotated[str, AfterValidator(_deployment)] = ""
    """The Worker Deployment that a worker belongs to; empty for a worker without a version."""
    build_id: Literal[""] | Annotated[str, AfterValidator(_build_id)] = ""
    """Which version of that deployment the worker's code is."""

    drill_socket: Path | None = None
    """Where a fault drill listens that may hold this worker at each effect; local use only."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_smtp(self.smtp_url.get_secret_value())
        self._check_payment_key()
        if self.drill_socket is not None and self.environment != LOCAL:
            raise ValueError(f"NORTHWIND_DRILL_SOCKET: for environment {LOCAL} only")
        if bool(self.deployment) != bool(self.build_id):
            raise ValueError("NORTHWIND_DEPLOYMENT and NORTHWIND_BUILD_ID: set both, or neither")
        return self

    def _check_payment_key(self) -> None:
        if self.stripe_api_key is None:
            return
        _, _, rest = self.stripe_api_key.get_secret_value().partition("_")
        if self.environment == PRODUCTION and not rest.startswith("live_"):
            raise ValueError("STRIPE_API_KEY: environment production needs a live key")
        if self.environment != PRODUCTION and not rest.startswith("test_"):
            raise ValueError(
                f"STRIPE_API_KEY: environment {self.environment} takes a test key only, so that a "
                "trial cannot move money"
            )

    @property
    def at_stripe(self) -> bool:
        """Whether payments go to Stripe itself."""
        return self.payments_url in ("", STRIPE_ITSELF)

    @property
    def payment_key(self) -> str:
        """The payment provider's key.

        Raises:
            SettingsError: none is set, and the environment is not the local one.
        """
        if self.stripe_api_key is not None:
            return self.stripe_api_key.get_secret_value()
        if self.environment == LOCAL and not self.at_stripe:
            return SANDBOX_STRIPE_KEY
        raise SettingsError("STRIPE_API_KEY is not set")

    def lacks_for_a_worker(self) -> list[str]:
        """What a worker needs and nobody has set, each as a line; the commands do without."""
        lacks = []
        for name in ("payment_key", "model", "model_key"):
            try:
                getattr(self, name)
            except SettingsError as error:
                lacks.append(str(error))
        return lacks

    @property
    def _model_at_company(self) -> bool:
        at_company = self.model_base_url.startswith(self.company_url)
        return at_company and self.model_provider == "openai"

    @property
    def model(self) -> str:
        """The name of the model to ask.

        Raises:
            SettingsError: none is set, and the model is not the stand-in company's.
        """
        if self.model_name:
            return self.model_name
        if self._model_at_company:
            return SANDBOX_MODEL
        raise SettingsError("NORTHWIND_MODEL_NAME is not set")

    @property
    def model_key(self) -> str:
        """The model provider's key.

        Raises:
            SettingsError: none is set, and the model is not the stand-in company's.
        """
        openai = self.model_provider == "openai"
        key = self.openai_api_key if openai else self.anthropic_api_key
        if key is not None and key.get_secret_value():
            return key.get_secret_value()
        if self._model_at_company:
            return SANDBOX_MODEL_KEY
        raise SettingsError(f"{self.model_provider.upper()}_API_KEY is not set")


def load_settings(**given: str) -> Settings:
    """Read the environment.

    Args:
        given: Settings, by field, that count instead of what the environment has.

    Raises:
        SettingsError: in one line, what is wrong with which setting. Values are not shown.
    """
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        problems = {
            _in_words(dict(row))
            for row in error.errors(include_input=False)
            # A default that is made of a wrong setting is no second mistake.
            if row["type"] not in ("default_factory_not_called", "literal_error")
            or row["loc"] == ("model_provider",)
        }
        raise SettingsError("; ".join(sorted(problems))) from None


def _in_words(row: dict[str, Any]) -> str:
    message = str(row["msg"]).removeprefix("Value error, ")
    if not row["loc"]:
        return message
    name = str(row["loc"][0])
    return f"{name if name.isupper() else 'NORTHWIND_' + name.upper()}: {message}"


def _check_smtp(url: str) -> None:
    name = "NORTHWIND_SMTP_URL"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(f"{name}: not a URL") from None
    if parts.scheme not in _SMTP_SCHEMES or not parts.hostname or port == 0:
        raise ValueError(f"{name}: must look like smtp://host:25, smtps://… or smtp+starttls://…")
    if parts.password and parts.scheme == "smtp" and not _is_loopback(parts.hostname):
        raise ValueError(f"{name}: a password needs smtps:// or smtp+starttls://")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
