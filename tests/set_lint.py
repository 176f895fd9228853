"""A lint against reading a set in an order, in code that is replayed.

    python -m tests.set_lint [TREE]     # part of `make check`

The order of a set of texts is another one in each process. So what a run does in the order of a set
it does otherwise when it is replayed: neither sandbox nor types see that, and a replay of saved
histories sees it only where chance has it so. To ask whether something is in a set, and to sort
one, is well.

A set is known by what it is made by, by its annotation, or by the name that either was given to. So
one that comes out of a library is beyond it, and so is what is done with one behind `any` or `sum`.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

# The domain runs inside of workflows.
_FOLDERS = ("workflows", "domain")
_TYPES = ("set", "frozenset", "Set", "AbstractSet", "MutableSet", "FrozenSet")
_MAKERS = ("set", "frozenset")
_METHODS = ("union", "intersection", "difference", "symmetric_difference", "copy")
_OPERATORS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
# What gives the same, whatever the order; the latter three unless a key makes things alike.
_WITHOUT_ORDER = ("set", "frozenset", "any", "all", "sum", "len", "update", "issubset")
_BY_VALUE = ("sorted", "min", "max")
_IN_ORDER = frozenset(
    "list tuple iter next enumerate zip map filter reversed deque dict join fromkeys extend "
    "extendleft chain from_iterable islice str repr".split()
)


def check(tree: Path) -> list[str]:
    """Every place of a tree's workflow code at which a set is read in an order, in one line."""
    files = [file for name in _FOLDERS for file in sorted((tree / name).rglob("*.py"))]
    parsed = {file: _nodes(file.read_text()) for file in files}
    fields = {name for code in parsed.values() for name in _fields(code)}
    problems = []
    for file, code in parsed.items():
        sets = _Sets(fields, set(_variables(code)))
        # What one line says of a name helps to know another's.
        while sets.learn(code):
            pass
        for line, what in sorted(set(_read_in_order(code, sets))):
            problems.append(f"{file.relative_to(tree)}:{line}: {what} takes a set in its order")
    return problems


@cache
def _nodes(text: str) -> Sequence[ast.AST]:
    """All of a file's code. Kept: the copies of the tree that tests check are mostly alike."""
    return tuple(ast.walk(ast.parse(text)))


def _last_name(node: ast.AST | None) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_set_type(annotation: ast.AST | None) -> bool:
    if isinstance(annotation, ast.BinOp):
        return _is_set_type(annotation.left) or _is_set_type(annotation.right)
    whole = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return _last_name(whole) in _TYPES


def _fields(code: Sequence[ast.AST]) -> Iterator[str]:
    """Fields and functions that say of themselves that they are sets; any file may use them."""
    for node in code:
        for part in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(part, ast.AnnAssign) and _is_set_type(part.annotation):
                yield _last_name(part.target)
        match node:
            case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation):
                if _is_set_type(annotation):
                    yield name
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_set_type(node.returns):
                yield node.name


def _variables(code: Sequence[ast.AST]) -> Iterator[str]:
    """Variables and parameters that say so; they are known in their own file."""
    fields = {id(part) for node in code if isinstance(node, ast.ClassDef) for part in node.body}
    for node in code:
        if isinstance(node, ast.arg) and _is_set_type(node.annotation):
            yield node.arg
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) if id(node) not in fields:
                if _is_set_type(node.annotation):
                    yield name


class _Sets:
    def __init__(self, fields: set[str], variables: set[str]) -> None:
        self._fields, self._variables = set(fields), variables

    def learn(self, code: Sequence[ast.AST]) -> bool:
        """Note to what sets are given in a file; whether that is more than before."""
        before = len(self._fields) + len(self._variables)
        for node in code:
            match node:
                case ast.Assign(targets=targets, value=value) if self.has(value):
                    self._variables |= {one.id for one in targets if isinstance(one, ast.Name)}
                    self._fields |= {one.attr for one in targets if isinstance(one, ast.Attribute)}
                case ast.NamedExpr(target=target, value=value) if self.has(value):
                    self._variables.add(target.id)
        return len(self._fields) + len(self._variables) > before

    def has(self, node: ast.AST | None) -> bool:
        """Whether an expression is a set."""
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _METHODS:
                return self.has(value)
            case ast.Call(func=called):
                return _last_name(called) in (*_MAKERS, *self._fields)
            case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _OPERATORS):
                return any(self.has(side) or _is_keys(side) for side in (left, right))
            case ast.IfExp(body=body, orelse=other):
                return self.has(body) or self.has(other)
            case ast.Name(id=name):
                return name in self._variables
            case ast.Attribute(attr=name):
                return name in self._fields
        return False


def _is_keys(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) == "keys"


def _read_in_order(code: Sequence[ast.AST], sets: _Sets) -> Iterator[tuple[int, str]]:
    harmless = {id(given) for node in code for given in _without_order(node)}
    for node in code:
        match node:
            case ast.For() | ast.AsyncFor() if sets.has(node.iter):
                yield node.lineno, "a loop"
            case ast.ListComp() | ast.DictComp() | ast.GeneratorExp() if id(node) not in harmless:
                if any(sets.has(part.iter) for part in node.generators):
                    yield node.lineno, "a comprehension"
            case ast.Starred() | ast.YieldFrom() if sets.has(node.value):
                if id(node) not in harmless:
                    yield node.lineno, "an unpacking"
            case ast.Assign(targets=[ast.Tuple() | ast.List()]) if sets.has(node.value):
                yield node.lineno, "an unpacking"
            case ast.FormattedValue() if sets.has(node.value):
                yield node.lineno, "a text"
            case ast.Call(func=ast.Attribute(value=value, attr="pop")) if sets.has(value):
                yield node.lineno, "pop()"
            case ast.Call() if any(map(sets.has, node.args)):
                name = _last_name(node.func)
                by_key = name in _BY_VALUE and any(key.arg == "key" for key in node.keywords)
                if name in _IN_ORDER or by_key:
                    yield node.lineno, f"{name}()"


def _without_order(node: ast.AST) -> Iterator[ast.AST]:
    """What is read by something to which its order does not matter."""
    if isinstance(node, ast.Set):
        yield from node.elts
    if isinstance(node, ast.Call):
        name = _last_name(node.func)
        if name in _WITHOUT_ORDER or (name in _BY_VALUE and not node.keywords):
            yield from node.args


def main() -> int:
    """Check the tree that is named, or this one; the exit code."""
    tree = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    problems = check(tree)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
