"""Makes a pattern from ONNX text with variables: `{ a = Relu(x) y = Mul(a, c_scale) }`.

Beyond ONNX text, an operand may be a number, a list, a call, `either(…)`, `near(…)`, `_` or `...`, and an attribute
may be `?`, `?name` or `none`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.files.text import attributes_from_text
from onnxsmith.graph.patterns.pattern import (
    Absent,
    Anything,
    AttributeVariable,
    Either,
    Exact,
    Kind,
    Number,
    Numbers,
    Operand,
    Pattern,
    PatternNode,
    Rest,
    Result,
    Variable,
    Wanted,
)
from onnxsmith.graph.patterns.pattern_tracing import as_dtype, constant_node, exact, variable
from onnxsmith.graph.patterns.pattern_validation import checked, choices
from onnxsmith.graph.patterns.tokens import Tokens
from onnxsmith.graph.structure import schema as schemas

_PYTHON = ("op", "g")
"""Lists the names that stand in front of operators in Python: of a pattern's function, and of `build`."""
_KINDS = {"const": Kind.CONSTANT, "scalar": Kind.SCALAR}


def from_text(text: str, *, is_replacement: bool = False) -> Pattern:
    """Makes a pattern, or a replacement, from ONNX text.

    Raises:
        OnnxsmithError: a `pattern/…` problem.
    """
    where = "the text of the replacement" if is_replacement else "the text of the pattern"
    tokens = Tokens(text, where)
    return checked(_Reader(tokens, where, is_replacement).pattern(), where, is_replacement=is_replacement)


@dataclass
class _Reader:
    """Reads one pattern. `named` maps names to results and choices."""

    tokens: Tokens
    where: str
    is_replacement: bool = False

    def __post_init__(self) -> None:
        self.nodes: list[PatternNode] = []
        self.named: dict[str, Operand] = {}
        self.variables: dict[str, Variable] = {}
        self.inner: set[str] = set()

    def pattern(self) -> Pattern:
        tokens = self.tokens
        if tokens.take("<"):  # the head of a model: its versions say nothing about a pattern
            tokens.until(">")
            tokens.expect(">")
        name, outputs, braced = self._head()
        last: list[tuple[str, ...]] = []
        if braced:
            tokens.expect("{")
        while tokens.peek() not in ("}", ""):
            last.append(self._statement())
        if braced:
            tokens.expect("}")
        if tokens.peek():
            raise tokens.wrong(f"the pattern ends before {tokens.peek()!r}")
        if outputs is None:
            outputs = [one for names in last if not self.inner.intersection(names) for one in names if one]
        results = tuple(self._output(one) for one in outputs)
        return Pattern(tuple(self.nodes), results, tuple(self.variables.values()), name)

    def _head(self) -> tuple[str, list[str] | None, bool]:
        """Reads the head, `name (x, const scale) => (y)`. Every part of it may be missing."""
        tokens, name, outputs = self.tokens, "find", None
        is_head = tokens.peek() == "(" or (tokens.peek(1) == "(" and "=>" in self._before_brace())
        if is_head:
            if tokens.peek() != "(":
                name = tokens.name("the name of the pattern")
            for words in self._list():
                kind = _KINDS.get(words[0], Kind.VALUE) if len(words) > 1 else Kind.VALUE
                self.variables[words[-1]] = variable(words[-1], kind)
            if tokens.take("=>"):
                outputs = [words[-1] for words in self._list()]
        elif self.is_replacement and tokens.peek().isidentifier() and not tokens.peek(1):
            outputs = [tokens.next()]  # a variable alone
        return name, outputs, is_head or tokens.peek() == "{"

    def _before_brace(self) -> list[str]:
        found: list[str] = []
        while (token := self.tokens.peek(len(found))) not in ("{", "", "="):
            found.append(token)
        return found

    def _list(self) -> list[list[str]]:
        """Reads a list in parentheses, such as `(float[N] x, const c)`; each item as its words."""
        tokens, found = self.tokens, []
        tokens.expect("(")
        while not tokens.take(")"):
            words = tokens.until(",)").split()
            if not words or not words[-1].isidentifier():
                raise tokens.wrong("a name is expected in the list")
            found.append(words)
            tokens.take(",")
        return found

    def _statement(self) -> tuple[str, ...]:
        """Reads `a, b = Op(…)`, or a call alone, and returns the names of its results."""
        tokens, names = self.tokens, [""]
        if tokens.peek(1) in ("=", ","):
            names = []
            while not tokens.take("="):
                given = "" if tokens.peek() == "," else tokens.name("the name of a result")
                names.append("" if given == "_" else given)
                if not tokens.take(",") and tokens.peek() != "=":
                    raise tokens.wrong("'=' is expected")
        else:
            names = [f"result_{len(self.nodes)}"]
        found = self._call(names)
        results = [Result(found.node, n) for n in range(len(names))] if isinstance(found, Result) else [found]
        for one, result in zip(names, results, strict=True):
            if one in self.named or one in self.variables:
                raise tokens.wrong(f"the name {one!r} is given twice, or is read before")
            if one:
                self.named[one] = result
        if isinstance(found, Exact):
            self.inner.update(names)  # a constant is no result of the pattern
        return tuple(names)

    def _call(self, names: list[str] | None = None) -> Operand:
        """Reads `Op<axis = 1>(x, 0.5)`."""
        tokens = self.tokens
        op = tokens.name("an operator")
        if op == "near":
            return self._near()
        raw, attributes = self._attributes() if tokens.take("<") else ([], {})
        inputs = self._operands()
        if not raw and not attributes and tokens.take("<"):
            raw, attributes = self._attributes()
        attributes |= self._plain(raw)
        if op == "either":
            if attributes or not inputs:
                raise tokens.wrong("either() has operands and no attributes")
            return Either(tuple(inputs))
        domain, _, op_type = op.rpartition("::" if "::" in op else ".")
        domain = "" if domain == "ai.onnx" else domain
        if op == f"{domain}.{op_type}" and domain in _PYTHON and schemas.versions(op_type, ""):
            raise tokens.prefixed(domain)
        if (domain, op_type) == ("", "any"):
            op_type = ""
        literal = constant_node(op_type, domain, attributes) if not inputs else None
        if literal is not None:
            return literal
        while inputs and inputs[-1] is None:
            inputs.pop()
        outputs = names or [f"{(op_type or 'any').lower()}_{len(self.nodes)}"]
        self.nodes.append(PatternNode(op_type, domain, tuple(inputs), tuple(attributes.items()), tuple(outputs)))
        return Result(len(self.nodes) - 1, 0)

    def _operands(self) -> list[Operand]:
        tokens, found = self.tokens, []
        tokens.expect("(")
        while not tokens.take(")"):
            found.append(None if tokens.peek() in (",", ")") else self._operand())
            if not tokens.take(",") and tokens.peek() != ")":
                raise tokens.wrong("',' or ')' is expected")
        return found

    def _operand(self) -> Operand:
        tokens = self.tokens
        token = tokens.peek()
        if token == "...":
            tokens.next()
            return Rest()
        if token == "[":
            tokens.next()
            found = []
            while not tokens.take("]"):
                found.append(self._number())
                tokens.take(",")
            return Numbers(tuple(found))
        if token.startswith('"'):
            text = _unquoted(tokens.next())
            return exact(text) if text else None
        if _is_number(token):
            return Number(self._number())
        if tokens.peek(1) in ("(", "<"):
            return self._call()
        name = tokens.name("an operand")
        if name == "_":
            return Anything()
        if name in self.named:
            self.inner.add(name)
            return self.named[name]
        return self.variables.setdefault(name, variable(name))

    def _number(self) -> float | bool:
        token = self.tokens.next()
        if not _is_number(token):
            raise self.tokens.wrong(f"a number is expected, not {token!r}")
        if token in ("true", "false"):
            return token == "true"
        return int(token) if token.lstrip("-").isdecimal() else float(token)

    def _near(self) -> Number:
        """Reads `(0.5, rel = 1e-6)`."""
        tokens = self.tokens
        tokens.expect("(")
        value, rel = self._number(), 1e-6
        if tokens.take(","):
            if tokens.take("rel"):
                tokens.expect("=")
            rel = float(self._number())
        tokens.expect(")")
        return Number(value, rel)

    def _attributes(self) -> tuple[list[str], dict[str, Wanted]]:
        """Reads attributes up to `>`. Returns the plain ones as ONNX text, and the parsed special ones."""
        tokens, raw = self.tokens, []
        found: dict[str, Wanted] = {}
        while not tokens.take(">"):
            name = tokens.name("the name of an attribute")
            kind = f": {tokens.name('a type')}" if tokens.take(":") else ""
            tokens.expect("=")
            if tokens.take("?"):
                found[name] = AttributeVariable("" if tokens.peek() in (",", ">") else tokens.name("a name"))
            elif tokens.peek() == "none":
                tokens.next()
                found[name] = Absent()
            elif tokens.peek() == "near":
                tokens.next()
                found[name] = self._near()
            else:
                value = tokens.until(",>")
                if value.replace(" ", "") == "[]":
                    found[name] = ()
                elif value.isidentifier():
                    found[name] = self._dtype(name, value)
                else:
                    raw.append(f"{name}{kind} = {value}")
            tokens.take(",")
        return raw, found

    def _dtype(self, name: str, value: str) -> int:
        """Reads `FLOAT16` in the place of the number of a dtype."""
        found = as_dtype(name, value, self.where)
        if not isinstance(found, int):
            raise self.tokens.wrong(f"the attribute {name} is {value}, which is not a value")
        return found

    def _plain(self, raw: list[str]) -> dict[str, Wanted]:
        if not raw:
            return {}
        try:
            (given,) = attributes_from_text([", ".join(raw)], self.where)
        except OnnxsmithError as error:
            raise problem(
                "pattern/text",
                f"the attributes {', '.join(raw)} cannot be read",
                where=self.where,
                why=error.problem.why or error.problem.what,
                fix='write axis = 1, scales = [1.0, 2.0], mode = "linear"',
            ) from error
        return {name: self._wanted(attribute) for name, attribute in given.items()}

    def _wanted(self, attribute: ir.Attr) -> Wanted:
        if attribute.is_ref():
            return AttributeVariable(attribute.ref_attr_name or "")
        kind, value = attribute.type, attribute.value
        if kind in (ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING):
            found: Wanted = value
            return found
        if kind in (ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS):
            return tuple(value)
        if kind == ir.AttributeType.TENSOR:
            return exact(attribute.as_tensor())
        raise self.tokens.wrong(f"the attribute {attribute.name} is a {kind.name.lower()}, which cannot be compared")

    def _output(self, name: str) -> Any:
        found = self.named.get(name)
        if found is None and self.is_replacement:
            return self.variables.setdefault(name, variable(name))
        if found is None or not all(isinstance(one, Result) for one in choices(found)):
            raise self.tokens.wrong(f"{name!r} is not the result of an operator of the pattern")
        return found


def _is_number(token: str) -> bool:
    return token in ("true", "false", "inf", "-inf", "nan") or token.lstrip("-.")[:1].isdecimal()


def _unquoted(token: str) -> str:
    return "".join(part[1] if part.startswith("\\") else part for part in _ESCAPES.findall(token[1:-1]))


_ESCAPES = re.compile(r"\\.|[^\\]+", re.DOTALL)
