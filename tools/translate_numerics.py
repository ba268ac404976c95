"""Translates fmimaster/numerics to C: ``python tools/translate_numerics.py`` writes the header of the kernel.

They are written in a small part of Python whose meaning in C is the same, bit for bit: functions of numbers and arrays,
``for`` over a range, ``while``, ``if``, assignments, calls of each other, arithmetic of floats. What C would compute in
another way is refused: a quotient of integers, ``//``, ``%``, comparisons in a chain, a float in an integer variable.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "fmimaster"
HEADER = PACKAGE / "kernel" / "numerics.h"
MODULES = ("polynomials", "indicators", "anderson", "step_sizes", "runge_kutta")
"""A function stands after those that it calls."""

TYPES = {"float": "double", "Number": "double", "int": "int", "bool": "int", "None": "void"}
ARRAYS = {"Doubles": "double", "Ints": "int", "Cubics": "double"}
CALLS = {
    "abs": "fabs",
    "max": "larger",
    "min": "smaller",
    "sqrt": "sqrt",
    "copysign": "copysign",
    "isnan": "isnan",
    "isfinite": "isfinite",
    "int": "(int)",
}
INTEGERS = ("isnan", "isfinite", "int")
"""Calls whose results are integers."""

UNARY, PRIMARY, TERNARY = 8, 9, 1
OPERATORS: dict[type[ast.AST], tuple[str, int]] = {
    ast.Or: ("||", 2),
    ast.And: ("&&", 3),
    ast.Eq: ("==", 4),
    ast.NotEq: ("!=", 4),
    ast.Lt: ("<", 5),
    ast.LtE: ("<=", 5),
    ast.Gt: (">", 5),
    ast.GtE: (">=", 5),
    ast.Add: ("+", 6),
    ast.Sub: ("-", 6),
    ast.Mult: ("*", 7),
    ast.Div: ("/", 7),
    ast.USub: ("-", UNARY),
    ast.Not: ("!", UNARY),
}
"""In C, and how strongly they bind."""


def refuse(node: ast.AST, why: str = "is not in the part of Python that is translated") -> None:
    """Raise an error that shows the place."""
    raise SyntaxError(f"line {getattr(node, 'lineno', 0)}: `{ast.unparse(node)}` {why}")


class Function:
    """One function in C.

    Parameters
    ----------
    node : as it is in Python
    constants : name → value, of all modules
    known : name → functions that were translated before
    """

    def __init__(
        self, node: ast.FunctionDef, constants: dict[str, object], known: dict[str, Function]
    ) -> None:
        self.constants, self.known = constants, known
        self.kinds: dict[str, str] = {}
        """Of variables: a type in C; of arrays, that of their elements."""
        self.arguments = [argument.arg for argument in node.args.args]
        self.written: set[str] = set()
        for argument in node.args.args:
            kind = ast.unparse(argument.annotation or argument)
            self.kinds[argument.arg] = TYPES[kind] if kind in TYPES else ARRAYS[kind]
        kinds = {a.arg: ast.unparse(a.annotation or a) for a in node.args.args}
        self.arrays = {name for name, kind in kinds.items() if kind in ARRAYS}
        self.matrices = {name for name, kind in kinds.items() if kind == "Cubics"}
        self.result = TYPES[ast.unparse(node.returns or node)]
        self.locals: list[str] = []
        body = self.block(node.body[1:])
        heads = ", ".join(map(self.declared, self.arguments))
        numbers = [f"double {', '.join(n)};" for n in [self._locals_of("double")] if n]
        numbers += [f"int {', '.join(n)};" for n in [self._locals_of("int")] if n]
        self.text = "\n".join(
            [
                *comment(ast.get_docstring(node) or ""),
                f"static inline {self.result} fm_{node.name}({heads})",
                "{",
                *indented(numbers),
                *indented(body),
                "}",
            ]
        )

    def _locals_of(self, kind: str) -> list[str]:
        return [name for name in self.locals if self.kinds[name] == kind]

    def declared(self, name: str) -> str:
        """An argument with its type."""
        if name not in self.arrays:
            return f"{self.kinds[name]} {name}"
        if name in self.matrices:  # const would be another type of array in C
            return f"{self.kinds[name]} (*{name})[4]"
        return f"{'' if name in self.written else 'const '}{self.kinds[name]} *{name}"

    def block(self, body: list[ast.stmt]) -> list[str]:
        """Statements, line by line."""
        return [line for statement in body for line in self.statement(statement)]

    def statement(self, s: ast.stmt) -> list[str]:
        """One statement, line by line."""
        match s:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                return [f"{self.stored(target, value)} = {self.text_of(value)};"]
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in OPERATORS:
                whole = ast.copy_location(ast.BinOp(target, op, value), s)
                self.text_of(whole)  # or it is refused
                sign = OPERATORS[type(op)][0]
                return [f"{self.stored(target, whole)} {sign}= {self.text_of(value)};"]
            case ast.For(target=ast.Name(id=i), iter=ast.Call(func=ast.Name(id="range"))):
                return self.loop(s, i, s.iter.args)
            case ast.While(test=test, orelse=[]):
                return [f"while ({self.text_of(test)}) {{", *indented(self.block(s.body)), "}"]
            case ast.If(test=test):
                lines = [f"if ({self.text_of(test)}) {{", *indented(self.block(s.body))]
                match s.orelse:
                    case []:
                        return [*lines, "}"]
                    case [ast.If() as other]:
                        first, *rest = self.statement(other)
                        return [*lines, f"}} else {first}", *rest]
                return [*lines, "} else {", *indented(self.block(s.orelse)), "}"]
            case ast.Return(value=ast.expr() as value):
                if self.result == "int" and self.kind(value) == "double":
                    refuse(s, "returns a float as an integer")
                return [f"return {self.text_of(value)};"]
            case ast.Expr(value=ast.Call() as call):
                return [f"{self.text_of(call)};"]
            case ast.Continue() | ast.Break():
                return [f"{ast.unparse(s)};"]
        refuse(s)
        raise AssertionError

    def stored(self, target: ast.expr, value: ast.expr) -> str:
        """The left side of an assignment; a new name becomes a local variable."""
        name = target.value if isinstance(target, ast.Subscript) else target
        if not isinstance(name, ast.Name) or name.id in self.constants:
            refuse(target)
            raise AssertionError
        if isinstance(target, ast.Subscript):
            self.written.add(name.id)
        elif name.id not in self.kinds:
            self.kinds[name.id] = self.kind(value)
            self.locals.append(name.id)
        if self.kinds[name.id] == "int" and self.kind(value) == "double":
            refuse(value, f"is a float, and {name.id} an integer")
        return self.text_of(target)

    def loop(self, s: ast.For, i: str, bounds: list[ast.expr]) -> list[str]:
        """A ``for`` over a range, whose variable counts up or down by one."""
        changed = {
            n.id
            for b in s.body
            for n in ast.walk(b)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        read = {n.id for bound in bounds for n in ast.walk(bound) if isinstance(n, ast.Name)}
        if changed & {i, *read} or s.orelse:
            refuse(s, "changes what its range depends on")
        self.kinds[i] = "int"
        down = len(bounds) == 3 and ast.unparse(bounds[2]) == "-1"
        if len(bounds) == 3 and not down:
            refuse(s)
        first = self.text_of(bounds[0]) if len(bounds) > 1 else "0"
        last = self.text_of(bounds[1] if len(bounds) > 1 else bounds[0], 6)
        head = f"for (int {i} = {first}; {i} {'>' if down else '<'} {last}; {i}{'--' if down else '++'}) {{"
        return [head, *indented(self.block(s.body)), "}"]

    def kind(self, e: ast.expr) -> str:
        """Whether an expression is an integer or a double."""
        match e:
            case ast.Constant(value=value):
                return "double" if isinstance(value, float) else "int"
            case ast.Name(id=name) if name in self.constants:
                return "double" if isinstance(self.constants[name], float) else "int"
            case ast.Name(id=name) if name in self.kinds:
                return self.kinds[name]
            case ast.Subscript(value=ast.Name(id=name)) if name in self.arrays:
                return self.kinds[name]
            case ast.Subscript(value=array):
                while isinstance(array, ast.Subscript):
                    array = array.value
                value = self.constants[ast.unparse(array)]
                while isinstance(value, tuple):
                    value = value[0]
                return "double" if isinstance(value, float) else "int"
            case ast.BinOp(left=left, op=op, right=right):
                kinds = {self.kind(left), self.kind(right)}
                return "double" if isinstance(op, ast.Div | ast.Pow) else min(kinds)
            case ast.IfExp(body=one, orelse=other):
                return min(self.kind(one), self.kind(other))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.kind(operand)
            case ast.UnaryOp() | ast.BoolOp() | ast.Compare():
                return "int"
            case ast.Call(func=ast.Name(id=name)):
                if name in self.known:
                    return self.known[name].result
                return "int" if name in INTEGERS else "double"
        return "double"

    def text_of(self, e: ast.expr, least: int = 0) -> str:
        """An expression in C, in parentheses if it binds less strongly than wanted."""
        text, strength = self.expression(e)
        return f"({text})" if strength < least else text

    def expression(self, e: ast.expr) -> tuple[str, int]:
        """An expression in C, and how strongly it binds."""
        match e:
            case ast.Constant(value=bool() | int() | float() as value):
                return literal(value), PRIMARY
            case ast.Name(id="inf" | "nan" as name):
                return {"inf": "INFINITY", "nan": "NAN"}[name], PRIMARY
            case ast.Name(id=name):
                return f"FM_{name}" if name in self.constants else name, PRIMARY
            case ast.Subscript(value=array, slice=index):
                return f"{self.text_of(array, PRIMARY)}[{self.text_of(index)}]", PRIMARY
            case ast.BinOp(left=left, op=ast.Pow(), right=right) if self.kind(left) == "double":
                return f"pow({self.text_of(left)}, {self.text_of(right)})", PRIMARY
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                if isinstance(op, ast.Div) and self.kind(left) == self.kind(right) == "int":
                    refuse(e, "divides integers")
                sign, strength = OPERATORS[type(op)]
                return (
                    f"{self.text_of(left, strength)} {sign} {self.text_of(right, strength + 1)}",
                    strength,
                )
            case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
                return f"{OPERATORS[type(op)][0]}{self.text_of(operand, UNARY)}", UNARY
            case ast.BoolOp(op=op, values=values):
                sign, strength = OPERATORS[type(op)]
                return f" {sign} ".join(self.text_of(v, 4) for v in values), strength
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
                sign, strength = OPERATORS[type(op)]
                return f"{self.text_of(left, 6)} {sign} {self.text_of(right, 6)}", strength
            case ast.IfExp(test=test, body=one, orelse=other):
                parts = self.text_of(test, 2), self.text_of(one, 2), self.text_of(other, TERNARY)
                return f"{parts[0]} ? {parts[1]} : {parts[2]}", TERNARY
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self.call(e, name, arguments), PRIMARY
        refuse(e)
        raise AssertionError

    def call(self, e: ast.expr, name: str, arguments: list[ast.expr]) -> str:
        """A call of another function, which may write into arrays that it is given."""
        texts = ", ".join(map(self.text_of, arguments))
        if name not in self.known:
            of_numbers = name in ("abs", "max", "min")
            if name not in CALLS or (of_numbers and "int" in map(self.kind, arguments)):
                refuse(e)
            return f"{CALLS[name]}({texts})"
        called = self.known[name]
        for argument, own in zip(called.arguments, arguments, strict=True):
            if argument in called.written and isinstance(own, ast.Name):
                self.written.add(own.id)
        return f"fm_{name}({texts})"


def indented(lines: list[str]) -> list[str]:
    """Lines of a block."""
    return [f"    {line}" for line in lines]


def comment(docstring: str) -> list[str]:
    """The first paragraph of a docstring as a comment."""
    first = docstring.split("\n\n")[0]
    return [f"/* {' '.join(first.split()).replace('``', '')} */"] if first else []


def literal(value: object) -> str:
    """A number, or a tuple of such."""
    if isinstance(value, tuple):
        return "{" + ", ".join(map(literal, value)) + "}"
    return repr(int(value) if isinstance(value, bool) else value)


def constant(name: str, value: object) -> str:
    """The definition of a constant: a number, or a table with rows of the same length."""
    if not isinstance(value, tuple):
        return f"#define FM_{name} {literal(value)}"
    sizes, first = "", value
    while isinstance(first, tuple):
        sizes, first = f"{sizes}[{len(first)}]", first[0]
    kind = "double" if isinstance(first, float) else "int"
    return f"static const {kind} FM_{name}{sizes} = {literal(value)};"


def translation() -> str:
    """All modules in C."""
    constants: dict[str, object] = {}
    functions: dict[str, Function] = {}
    parts = []
    for name in MODULES:
        path = PACKAGE / "numerics" / f"{name}.py"
        tree, module = (
            ast.parse(path.read_text(encoding="utf-8")),
            import_module(f"fmimaster.numerics.{name}"),
        )
        parts += [f"/* {path.relative_to(PACKAGE.parent).as_posix()} */"]
        for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
            if isinstance(node, ast.Assign | ast.AnnAssign):
                target = ast.unparse(
                    node.targets[0] if isinstance(node, ast.Assign) else node.target
                )
                assert target not in constants, f"{target} stands in two modules"
                constants[target] = getattr(module, target)
                about = after.value if isinstance(after, ast.Expr) else None
                texts = comment(str(ast.literal_eval(about))) if about else []
                parts.append("\n".join([*texts, constant(target, constants[target])]))
            elif isinstance(node, ast.FunctionDef):
                assert node.name not in functions, f"{node.name} stands in two modules"
                functions[node.name] = Function(node, constants, functions)
                parts.append(functions[node.name].text)
    head = "/* Made from fmimaster/numerics by tools/translate_numerics.py: do not edit. */"
    guard = (
        '#ifndef FM_NUMERICS_H\n#define FM_NUMERICS_H\n\n#include <math.h>\n\n#include "doubles.h"'
    )
    return "\n\n".join([head, guard, *parts, "#endif"]) + "\n"


if __name__ == "__main__":
    HEADER.write_text(translation(), encoding="utf-8", newline="\n")
