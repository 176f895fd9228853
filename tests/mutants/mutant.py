"""What a row of the table says: a safeguard, how it is broken, and what must go red."""

from dataclasses import dataclass
from pathlib import Path

# A test by its pytest id (all its parameters where it names none), or the arguments of a command:
# `("refund", "drill", …)`, which must end with 0, and with 1 where the safeguard is broken; with 5
# (out of reach) this machine does not let it run.
Check = str | tuple[str, ...]


class DoesNotApply(ValueError):
    """The table has rotted: a text to replace is not there exactly once. One line says which."""


@dataclass(frozen=True)
class Edit:
    """One exact replacement; the old text stands in the file exactly once."""

    path: str
    """From the root of the tree."""
    old: str
    new: str

    def apply(self, tree: Path) -> None:
        """Replace the text in a copy of the tree.

        Raises:
            DoesNotApply: the text is not there exactly once, or what comes out is not Python.
        """
        file = tree / self.path
        text = file.read_text() if file.is_file() else ""
        if (times := text.count(self.old)) != 1:
            line = self.old.strip().partition("\n")[0]
            raise DoesNotApply(f"{self.path} has {times} times, not once: {line!r}")
        broken = text.replace(self.old, self.new)
        if broken == text:
            raise DoesNotApply(f"{self.path} stays as it is")
        try:
            compile(broken, self.path, "exec")
        except SyntaxError as error:
            raise DoesNotApply(f"{self.path} is no Python any more: {error}") from None
        file.write_text(broken)
        # What was compiled before is known by a time in whole seconds, and this was quick.
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
            compiled.unlink()


@dataclass(frozen=True)
class Mutant:
    """A safeguard, and what it takes to break it and to miss it."""

    name: str
    """The safeguard, in words; or what is left of it, where two must be broken together."""
    promise: str
    """P1 to P8, as docs/architecture.md numbers them."""
    edits: tuple[Edit, ...]
    caught_by: tuple[Check, ...]
    """Each of these goes red by itself."""


def tests(file: str, *names: str) -> tuple[Check, ...]:
    """Tests of one file below `tests/`, each by its name, with the parameters in brackets."""
    return tuple(f"tests/{file}::{name}" for name in names)


def named(check: Check) -> str:
    """A check as it can be typed."""
    return check if isinstance(check, str) else " ".join(check)
