"""Reports on one operator: its schema, its changes by opset, the kernels of onnxruntime, and an example that runs."""

from __future__ import annotations

from collections.abc import Iterable

from onnxsmith.base.clock import stage
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.item_views import FormalAttribute, FormalOperand, Kernel, OperatorView
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.editor.building.operator_example import example, text_of_deprecated
from onnxsmith.graph.reading import operator_history, operator_text
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
            f"{op} has no version for opset {opset}",
            why=f"the operator exists since opset {since}; the installed onnx supports opsets up to {newest}",
            fix=f"give --opset from {since} to {newest}",
        )
    kernels, notes = _kernels(op, domain)
    with stage("example"):
        program, more = _example(op, domain, form, wanted if domain else opset or max(form.since, _USUAL))
    notes += more
    doc = schema.texts(op, domain, wanted).doc
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
        doc=operator_text.plain(doc),
        summary=operator_text.summary(doc),
    )
    changed = ", ".join(str(one.version) for one in part.history[1:])
    headline = f"{op}: since opset {since}" + (f", changed at {changed}" if changed else "")
    return Report("op", Verdict.DONE, (part,), notes=tuple(notes), headline=headline)


def _example(op: str, domain: str, form: Schema, version: int) -> tuple[str, list[str]]:
    """Returns an example of the form, and notes: of a deprecated form, ONNX text, or a program for the version of the
    domain before it was deprecated."""
    if not form.deprecated:
        program = example(op, domain, form, version)
        return program, [] if program else ["no example was found; docs/building.md shows how to make nodes"]
    text = text_of_deprecated(op, domain, form, version)
    if text:
        later = schema.first_alive(op, domain, form.since)
        newer = f"; the form of opset {later} is not deprecated" if later else ""
        note = (
            f"the specification deprecates this form, and onnx.checker refuses it; but {_RUNTIME} runs this example "
            f"in ONNX text: write it to model.onnxtxt, then `onnxsmith run model.onnxtxt --random`{newer}"
        )
        return text, [note]
    alive = schema.last_alive(op, domain)
    older = None if alive is None else schema.find(op, domain, alive)
    program = example(op, domain, older, alive) if older is not None and alive is not None else ""
    if program:
        return program, [f"the specification deprecates this form; the example uses opset {alive}"]
    return "", ["the specification deprecates this form, and no example was found"]


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
    near = near_names(op.lower(), [name.lower() for name in names.values()], _SUGGESTED, cutoff=0.5)
    alike = [full for word in dict.fromkeys(near) for full, name in names.items() if name.lower() == word]
    close = list(dict.fromkeys((*same, *alike)))[:_SUGGESTED]
    return problem(
        "op/unknown-operator",
        f"the specification has no operator {domain + '::' if domain else ''}{op}",
        why=f"domains of the installed onnx: {', '.join(sorted(name or 'ai.onnx' for name in schema.domains()))}",
        fix=f"did you mean {', '.join(close)}?" if close else "write it as Resize, or as ai.onnx.ml::TreeEnsemble",
    )
