"""An import contract that names what may be imported, so that a new dependency is refused.

import-linter's own contracts name what may not be imported; a list of everything that `domain`
does not need could never be complete. Registered in pyproject.toml.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

Breach = tuple[str, str, int]


def _within(module: str, packages: Iterable[str]) -> bool:
    """Tell whether `module` is one of `packages` or lies below one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _breaches(graph: ImportGraph, sources: set[str], allowed: set[str]) -> Iterator[Breach]:
    """Yield importer, imported module and line of every direct import that is not allowed."""
    for importer in sorted(module for module in graph.modules if _within(module, sources)):
        for imported in sorted(graph.find_modules_directly_imported_by(importer)):
            if not _within(imported, allowed):
                details = graph.get_import_details(importer=importer, imported=imported)
                yield importer, imported, details[0]["line_number"]


class OnlyImports(Contract):
    """The source modules import each other, `allowed_modules` and the standard library only.

    Direct imports only: what an allowed module imports is the matter of its own contract.
    """

    type_name = "only_imports"

    source_modules = fields.SetField(subfield=fields.StringField())
    allowed_modules = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Collect the breaches; a source module that does not exist is an error."""
        # The fields hold their values once import-linter has made the contract.
        sources = cast("set[str]", self.source_modules)
        allowed = cast("set[str]", self.allowed_modules)
        for source in sources - graph.modules:
            raise ValueError(f"There is no module {source!r}: mend the contract {self.name!r}.")
        found = list(_breaches(graph, sources, sources | allowed | sys.stdlib_module_names))
        return ContractCheck(kept=not found, metadata={"breaches": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each import that is not allowed."""
        for importer, imported, line in check.metadata["breaches"]:
            output.print_error(f"{importer} must not import {imported} (line {line})")
