"""Reports on one operator: its schema, its changes by opset, the kernels of onnxruntime, and an example that runs."""

from __future__ import annotations

import difflib
import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.item_views import FormalAttribute, FormalOperand, Kernel, OperatorView
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.editor.building.build import build
from onnxsmith.graph.reading import operator_history
from onnxsmith.graph.structure import schema
from onnxsmith.graph.structure.schema import Parameter, Schema
from onnxsmith.runtimes import base as runtimes

_RUNTIME = "onnxruntime"
_USUAL = 21
"""Sets the opset of an example if the user gives no opset. This opset is the default of `onnxsmith.build`: runtimes lag
behind the newest opset."""
_SUGGESTED = 5
"""Limits the names in a suggestion. A choice: one line."""


def operator_page(name: str, *, opset: int | None = None) -> Report:
    """Reports on an operator as it is at version `opset` of its domain (default: the newest).

    `name` is an operator of ai.onnx, or `domain::Name`. Nothing is written.

    Raises:
        OnnxsmithError: `op/unknown-operator` if the specification has no such operator, `op/unknown-opset` if the
            domain has no such version or the operator is newer.
    """
    domain, _, op = name.rpartition("::") if "::" in name else ("", "", name)
    domain = "" if domain == "ai.onnx" else domain
    if op not in schema.every_name(domain):
        raise _unknown(op, domain)
    newest, since = schema.domains()[domain], schema.versions(op, domain)[0]
    wanted = newest if opset is None else opset
    form = schema.find(op, domain, wanted) if since <= wanted <= newest else None
    if form is None:
        raise problem(
            "op/unknown-opset",
            f"{op} has no form of opset {opset}",
            why=f"the operator is there since opset {since}; the installed onnx knows opsets up to {newest}",
            fix=f"give --opset from {since} to {newest}",
        )
    kernels, notes = _kernels(op, domain)
    with stage("example"):
        program = "" if form.deprecated else example(op, domain, form, opset or max(form.since, _USUAL))
    if not program:
        notes.append("no example was found: docs/building.md shows operators with branches and bodies")
    part = OperatorView(
        name=op,
        domain=domain,
        since=since,
        version=form.since,
        deprecated=form.deprecated,
        inputs=_operands(form.inputs),
        outputs=_operands(form.outputs),
        attributes=tuple(_attribute(form, one) for one in form.attributes),
        history=tuple(operator_history.history(op, domain)),
        runtime=_RUNTIME,
        kernels=kernels,
        example=program,
    )
    changed = ", ".join(str(one.version) for one in part.history[1:])
    headline = f"{op}: since opset {since}" + (f", changed at {changed}" if changed else "")
    return Report("op", Verdict.DONE, (part,), notes=tuple(notes), headline=headline)


def _operands(formal: Iterable[Parameter]) -> tuple[FormalOperand, ...]:
    return tuple(
        FormalOperand(
            one.name, operator_history.kind(one), one.type, tuple(sorted(map(operator_history.short, one.types)))
        )
        for one in formal
    )


def _attribute(form: Schema, name: str) -> FormalAttribute:
    kind = form.attributes[name].name.lower()
    return FormalAttribute(name, kind, name in form.required, operator_history.default(form, name))


def _kernels(op: str, domain: str) -> tuple[tuple[Kernel, ...] | None, list[str]]:
    """Returns the CPU kernels of onnxruntime, merged by opset versions, and notes."""
    try:
        with stage("kernels"):
            found = runtimes.get(_RUNTIME).kernels(domain, op)
    except OnnxsmithError as error:
        return None, [f"kernels are not shown: {error.problem.what}"]
    if found is None:
        return None, [f"kernels are not shown: the installed {_RUNTIME} does not list them"]
    spans = sorted({(one["first"], one["last"]) for one in found}, key=lambda span: (span[0], span[1] or span[0]))
    merged = []
    for first, last in spans:
        types: dict[str, set[str]] = {}
        for one in found:
            if (one["first"], one["last"]) == (first, last):
                for variable, allowed in one["types"].items():
                    types.setdefault(variable, set()).update(map(operator_history.short, allowed))
        merged.append(
            Kernel(first, last, {variable: tuple(sorted(names)) for variable, names in sorted(types.items())})
        )
    notes = [] if merged else [f"{_RUNTIME} has no CPU kernel of its own for {op}; it may expand or fuse the operator"]
    return tuple(merged), notes


def _unknown(op: str, domain: str) -> OnnxsmithError:
    names = {f"{home}::{name}" if home else name: name for home in schema.domains() for name in schema.every_name(home)}
    same = [full for full, name in names.items() if name.lower() == op.lower()]
    near = difflib.get_close_matches(op.lower(), [name.lower() for name in names.values()], _SUGGESTED, cutoff=0.5)
    alike = [full for word in dict.fromkeys(near) for full, name in names.items() if name.lower() == word]
    close = list(dict.fromkeys((*same, *alike)))[:_SUGGESTED]
    return problem(
        "op/unknown-operator",
        f"the specification has no operator {domain + '::' if domain else ''}{op}",
        why=f"domains of the installed onnx: {', '.join(sorted(name or 'ai.onnx' for name in schema.domains()))}",
        fix=f"did you mean {', '.join(close)}?" if close else "write it as Resize, or as ai.onnx.ml::TreeEnsemble",
    )


_SECONDS = 10.0
"""Limits the seconds of the search. A choice: most operators need a fraction of this time."""
_SHAPES: tuple[list[int], ...] = ([2, 2, 2, 2], [2, 2], [2, 2, 2], [2], [])
"""Lists shapes of operands. All sizes are equal, because equal sizes fit together in most operators."""
_NUMBERS = ([1], [2, 2, 2, 2], [0], [2, 2], [1, 1, 1, 1, 1, 1, 1, 1])
_COMBINATIONS = 400
"""Limits the combinations of operands that are tried for each number of operands, after combinations with equal sizes.
A choice."""
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(int64)": "int64",
    "tensor(bool)": "bool",
    "tensor(int32)": "int32",
    "tensor(uint8)": "uint8",
    "tensor(string)": "string",
}
_VALUES: dict[ir.AttributeType, tuple[Any, ...]] = {
    ir.AttributeType.INT: (1, 0),
    ir.AttributeType.INTS: ([2, 2], [1], [0]),
    ir.AttributeType.FLOAT: (1.0,),
    ir.AttributeType.FLOATS: ([1.0],),
    ir.AttributeType.STRING: ("ij,jk->ik",),
}


@dataclass(frozen=True)
class _Operand:
    """Describes an operand of the example: an input of a dtype and shape, a constant, or an operand that is left
    out."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    values: tuple[float, ...] | None = None

    def code(self, name: str) -> str:
        """Returns the operand as Python code; `name` is the variable of an input."""
        if self.values is None:
            return name if self.dtype else "None"
        return f"np.array({list(self.values)}, np.{self.dtype})"


def example(op: str, domain: str, schema: Schema, version: int) -> str:
    """Returns a program with `onnxsmith.build` that was checked and run; "" if the search found no program in time.
    Operators with branches or bodies, and operators of other domains than ai.onnx, have no example."""
    end = time.monotonic() + _SECONDS
    if domain or any(schema.attributes[name] not in _VALUES for name in schema.required):
        return ""
    for operands, attributes in _candidates(schema):
        if time.monotonic() > end:
            return ""
        results = _results(op, version, operands, attributes, run=False)
        if results and _results(op, version, operands, attributes, run=True):
            return _code(op, version, operands, attributes, several=results == "several")
    return ""


def _candidates(schema: Schema) -> Iterator[tuple[tuple[_Operand, ...], dict[str, Any]]]:
    required = [one for one in schema.inputs if not one.optional]
    counts = dict.fromkeys((len(required), *range(len(schema.inputs), len(required), -1)))
    values = [_VALUES[schema.attributes[name]] for name in schema.required]
    for count in counts:
        choices = [
            list(_choices(one, schema, given=not one.optional or index == count - 1))
            for index, one in enumerate(schema.inputs[:count])
        ]
        pairs = itertools.product(range(len(_SHAPES)), repeat=2)
        alike = [tuple(_at(each, n if index else m) for index, each in enumerate(choices)) for m, n in pairs]
        equal = [one for one in alike if len({operand.shape for operand in one}) == 1]
        some = itertools.islice(itertools.product(*choices), _COMBINATIONS)
        for operands in dict.fromkeys((*equal, *alike, *some)):
            for chosen in itertools.product(*values):
                yield operands, dict(zip(schema.required, chosen, strict=True))


def _at(choices: list[_Operand], number: int) -> _Operand:
    return choices[min(number, len(choices) - 1)]


def _choices(one: Parameter, schema: Schema, *, given: bool) -> Iterator[_Operand]:
    dtype = next((_DTYPES[type_] for type_ in _DTYPES if type_ in one.types), "")
    if not given or not dtype:
        yield _Operand()
        return
    if one.types == {"tensor(int64)"} or (one is not schema.inputs[0] and one.types == {"tensor(float)"}):
        yield from (_Operand(dtype, (len(n),), tuple(n)) for n in _NUMBERS)
    yield from (_Operand(dtype, tuple(shape)) for shape in _SHAPES)


def _results(op: str, version: int, operands: tuple[_Operand, ...], attributes: dict[str, Any], *, run: bool) -> str:
    """Returns "one" or "several" for the number of tensors that the call returns; "" if the call is refused."""
    try:
        with build(opset=version, verify=run) as g:
            given = [_made(g, index, one) for index, one in enumerate(operands)]
            results = getattr(g, op)(*given, **attributes)
            several = isinstance(results, tuple | list)
            g.output("y", results[0] if several else results)
    except OnnxsmithError:
        return ""
    return "several" if several else "one"


def _made(g: Any, index: int, one: _Operand) -> Any:
    if one.values is not None:
        return np.array(one.values, one.dtype)
    return g.input(f"x{index}", one.dtype, list(one.shape)) if one.dtype else None


def _code(op: str, version: int, operands: tuple[_Operand, ...], attributes: dict[str, Any], *, several: bool) -> str:
    lines = ["import numpy as np"] if any(one.values is not None for one in operands) else []
    lines += ["import onnxsmith", "", f'with onnxsmith.build("{op.lower()}.onnx", opset={version}) as g:']
    words = []
    for index, one in enumerate(operands):
        words.append(one.code(f"x{index}"))
        if one.dtype and one.values is None:
            lines.append(f'    x{index} = g.input("x{index}", "{one.dtype}", {list(one.shape)})')
    words += [f"{name}={value!r}" for name, value in attributes.items()]
    call = f"g.{op}({', '.join(words)})"
    lines += [f"    first, *others = {call}", '    g.output("y", first)'] if several else [f'    g.output("y", {call})']
    return "\n".join(lines)
