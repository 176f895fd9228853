"""A lint for `workflow.patched` and `workflow.deprecate_patch`, which fail late and far away.

    python -m tests.patch_lint [TREE]     # part of `make check`

The SDK remembers the answer to a patch id for the whole run. So a second call of the same id does
not ask again: in a loop, a run that passed the first time on the old path stays there. A call in a
handler comes whenever a message does, and its marker then stands elsewhere in each history. Each id
therefore has one place, which a run passes in its own order, and `domain/names.py` says where the
change stands in its life.

It sees the call alone: a function that holds one and is itself called in a loop is beyond it.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_CALLS = {"patched": "PATCHED", "deprecate_patch": "DEPRECATED"}
_HANDLERS = ("signal", "query", "update", "validator")
_REPEATED: dict[type[ast.AST], str] = {
    ast.For: "a loop",
    ast.AsyncFor: "a loop",
    ast.While: "a loop",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.Lambda: "a lambda",
}
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class _Call:
    place: str
    function: str
    constant: str
    """The name of its id in `domain/names.py`; empty where it is none."""


def check(tree: Path) -> list[str]:
    """Everything that is wrong with the patches of a tree, each in one line."""
    ids, stages = _names(tree / "domain" / "names.py")
    problems: list[str] = []
    calls: list[_Call] = []
    for file in sorted((tree / "workflows").rglob("*.py")):
        for node, parents in _nodes(file.read_text()):
            function = _patch_function(node)
            if function is None:
                continue
            place = f"{file.relative_to(tree)}:{getattr(node, 'lineno', 0)}"
            call = parents[-1] if parents else None
            if not isinstance(call, ast.Call) or call.func is not node:
                problems.append(f"{place}: {function} is called where it stands, and not handed on")
                continue
            problems += [f"{place}: {function} {why}" for why in _wrong_place(parents)]
            constant = _constant(call)
            if constant not in ids:
                problems.append(f"{place}: the id must be a constant of domain/names.py")
            calls.append(_Call(place, function, constant))
    return [*problems, *_wrong_ids(ids, stages), *_wrong_calls(calls, stages)]


@cache
def _nodes(text: str) -> Sequence[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """All of a file's code. Kept: the copies of the tree that tests check are mostly alike."""
    return tuple(_walk(ast.parse(text), ()))


def _walk(
    node: ast.AST, parents: tuple[ast.AST, ...]
) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    yield node, parents
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, (*parents, node))


def _patch_function(node: ast.AST) -> str | None:
    """Which of the two functions a node names, by whatever way it was imported."""
    if isinstance(node, ast.Attribute) and node.attr in _CALLS:
        return node.attr
    if isinstance(node, ast.Name) and node.id in _CALLS:
        return node.id
    if isinstance(node, ast.alias) and node.name in _CALLS:
        return node.name
    return None


def _constant(call: ast.Call) -> str:
    if len(call.args) != 1 or call.keywords:
        return ""
    [given] = call.args
    if isinstance(given, ast.Attribute):
        return given.attr
    return given.id if isinstance(given, ast.Name) else ""


def _wrong_place(parents: tuple[ast.AST, ...]) -> Iterator[str]:
    functions = [parent for parent in parents if isinstance(parent, _FUNCTION)]
    if not functions:
        yield "stands outside of any function"
    if len(functions) > 1:
        yield "stands in a function within a function"
    for what in dict.fromkeys(_REPEATED[type(p)] for p in parents if type(p) in _REPEATED):
        yield f"stands in {what}"
    if any(_is_handler(function) for function in functions):
        yield "stands in a handler"


def _is_handler(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in _HANDLERS
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
    )


def _wrong_ids(ids: dict[str, str], stages: dict[str, str]) -> Iterator[str]:
    for constant, value in ids.items():
        if list(ids.values()).count(value) > 1:
            yield f"domain/names.py: {constant} has the id {value!r} of another change"
        if constant not in stages:
            yield f"domain/names.py: PATCHES does not say where {constant} stands"


def _wrong_calls(calls: list[_Call], stages: dict[str, str]) -> Iterator[str]:
    for constant, stage in stages.items():
        found = [call for call in calls if call.constant == constant]
        wanted = next((name for name, word in _CALLS.items() if word == stage), None)
        if len(found) > 1:
            places = ", ".join(call.place for call in found)
            yield f"{constant} is used for {len(found)} places: {places}"
        if wanted is None and found:
            yield f"{found[0].place}: {constant} is {stage.lower()}, and is called here"
        if wanted is not None and (not found or any(c.function != wanted for c in found)):
            yield f"{constant} is {stage.lower()}, so it is called by {wanted}, once"


def _names(file: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Patch ids by their constants, and the stage of each."""
    ids: dict[str, str] = {}
    stages: dict[str, str] = {}
    for node in ast.parse(file.read_text()).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if not isinstance(target, ast.Name):
            continue
        if target.id.startswith("PATCH_") and isinstance(value, ast.Constant):
            ids[target.id] = str(value.value)
        if target.id == "PATCHES" and isinstance(value, ast.Dict):
            for key, stage in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Name) and isinstance(stage, ast.Attribute):
                    stages[key.id] = stage.attr
    return ids, stages


def main() -> int:
    """Check the tree that is named, or this one; the exit code."""
    tree = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    problems = check(tree)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
