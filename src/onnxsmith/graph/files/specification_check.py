"""Checks a model against the ONNX specification, and its declared shapes against the shapes that its operators give."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import onnx
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.words import first_few, nearest, pasted
from onnxsmith.graph.files import operand_clashes
from onnxsmith.graph.files.external import in_memory
from onnxsmith.graph.files.light_message import light_message
from onnxsmith.graph.structure import body_names, schema, walk
from onnxsmith.graph.structure.attribute_keys import exact
from onnxsmith.graph.structure.file_change import message_change, renamed_operator
from onnxsmith.graph.structure.file_paths import is_text
from onnxsmith.graph.structure.model_copy import cloned

_CLASH = "operands of a node do not fit together"
"""Says what happened if a node cannot be computed. A wrong declaration can be ignored, and runtimes do so."""
_SHOWN = 3
"""The most operators or tensors that a reason names. A choice."""
_DEPRECATED = "is deprecated in domain_version"
"""onnx's message about an operator that a later opset replaces."""
_CHANGED_WITHOUT = {("RoiAlign", "coordinate_transformation_mode")}
"""Lists attributes whose default is not what the operator did before it had the attribute (onnx, Changelog.md)."""
_UNNAMED = re.compile(r"\(op_type:\w+\)")
_BOTH = r"\((?P<ours>\d+)\) vs \((?P<theirs>\d+)\)"
_DIFFERENCES = (
    (
        re.compile(rf"differ in dimension (?P<axis>\d+): {_BOTH}"),
        "the operator computes {ours} in dimension {axis}, but the file declares {theirs}. ",
    ),
    (
        re.compile(r"Inferred=(?P<ours>\d+) Declared=(?P<theirs>\d+) Dimension=(?P<axis>\d+)"),
        "the operator computes {ours} in dimension {axis}, but the file declares {theirs}. ",
    ),
    (
        re.compile(rf"differ in rank: {_BOTH}"),
        "the operator computes {ours} dimensions, but the file declares {theirs}. ",
    ),
    (
        re.compile(r"elem type differs from existing elem type: \((?P<dtype>\d+)\) vs \((?P<other>\d+)\)"),
        "the operator computes {dtype}, but the file declares {other}. ",
    ),
)
"""Translates messages of onnx's strict inference into plain texts with the same meaning."""


def check(
    model: ir.Model,
    *,
    where: str = "the model",
    file: Path | None = None,
    message: onnx.ModelProto | None = None,
) -> tuple[Problem, ...]:
    """Raises if the model is invalid; returns shapes that contradict each other as doubtful.

    The checks are onnx's own (`onnx.checker`, strict shape inference). `file` is the file that the model was just
    loaded from: the checks then read it, unless it has external data. Without `file` they read `message`, the light
    message of the model, which they change; without `message` they make it. External data is not checked again:
    loading checked it.

    Raises:
        OnnxsmithError: `model/invalid` with the checker's reason.
    """
    checked = _checker(model, file, message)
    try:
        checked(full_check=True)
    except Exception as error:  # noqa: BLE001 — raised by one of the two checks, or by shape inference
        said = _first_lines(str(error))
    else:
        return ()
    try:
        checked(full_check=False)
    except onnx.checker.ValidationError as error:
        why, fix = (
            _opset_too_old(model, where)
            or _no_operator(model, where)
            or _odd_attributes(model, where)
            or _hidden(model, where)
            or ("", "export it again, or undo the edit that did this")
        )
        raise problem(
            "model/invalid",
            "the model breaks the ONNX specification",
            where=where,
            why=f"{_first_lines(str(error))}{why}",
            fix=fix,
        ) from error
    except Exception as error:
        raise problem(
            "model/invalid",
            "the model cannot be checked",
            where=where,
            why=_first_lines(str(error)),
            fix="export it again, or undo the edit that did this",
        ) from error
    return (_conflict(model, said, where),)  # the check without shape inference passed, so the inference raised it


def operands_clash(model: ir.Model) -> bool:
    """Whether operands of a node do not fit together, so that no runtime computes the model."""
    try:
        doubts = check(model)
    except OnnxsmithError:
        return False
    return any(one.what == _CLASH for one in doubts)


def refused_by_checker(model: ir.Model) -> str:
    """Returns why onnx's checker refuses the model, without shape inference; "" if it accepts the model."""
    return _refusal(model, full_check=False)


def refused_by_inference(model: ir.Model) -> str:
    """Returns why onnx's strict shape inference refuses the model; "" if it accepts the model. An invalid model is
    refused too, because the inference does not read it."""
    said = _refusal(model, full_check=True)
    return f"{_plain(said)}{said}"


def _refusal(model: ir.Model, *, full_check: bool) -> str:
    try:
        _checker(model)(full_check=full_check)
    except Exception as error:  # noqa: BLE001 — the checker, shape inference, or onnx-ir while it writes the message
        return _first_lines(str(error)) or type(error).__name__
    return ""


def _opset_too_old(model: ir.Model, where: str) -> tuple[str, str] | None:
    """Returns the reason and the fix if the model has operators of ONNX that are newer than the opset that it declares;
    None if it has none, or only in functions, which declare an opset of their own."""
    declared = model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))
    nodes = [node for graph in walk.main_graphs(model) for node in graph if node.domain in ("", "ai.onnx")]
    since = {node.op_type: min(schema.versions(node.op_type, ""), default=0) for node in nodes}
    newer = {op_type: version for op_type, version in since.items() if version > declared}
    if not newer:
        return None
    opset = max(newer.values())
    exist = first_few([f"{op_type} exists since opset {version}" for op_type, version in newer.items()], _SHOWN)
    why = f". The file declares opset {declared}, but {exist}"
    if not _is_valid_at(model, opset):
        return why, f"export it again at opset {opset} or newer"
    return why, _declaring(opset, where)


def _no_operator(model: ir.Model, where: str) -> tuple[str, str] | None:
    """Returns the reason and the fix if the main graph has operators that ONNX has at no opset, and whose name is like
    that of another one; None if it has none."""
    opset = model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))
    named = dict.fromkeys(node.op_type for node in model.graph if node.domain in ("", "ai.onnx"))
    unknown = [op_type for op_type in named if not any(schema.versions(op_type, ""))]
    meant = nearest(unknown[0], schema.operators("", opset)) if unknown else None
    if meant is None:
        return None
    return (
        f". ONNX has no operator {unknown[0]}; the nearest name is {meant}",
        f"if {meant} is meant, write it in the file: {renamed_operator(where, unknown[0], meant)}",
    )


def _is_valid_at(model: ir.Model, opset: int) -> bool:
    """Whether onnx's checker accepts the model if it declares this opset."""
    copy = cloned(in_memory(model))
    copy.opset_imports.pop("ai.onnx", None)
    copy.opset_imports[""] = opset
    said = refused_by_checker(copy)
    return not said or _DEPRECATED in said  # a deprecated operator still runs


def _declaring(opset: int, where: str) -> str:
    change = f"next(o for o in m.opset_import if o.domain in ('', 'ai.onnx')).version = {opset}"
    return f"declare opset {opset}: {message_change(where, change)}"


def _odd_attributes(model: ir.Model, where: str) -> tuple[str, str] | None:
    """Returns the reason and the fix if nodes have attributes of another opset than the declared one; None if no node
    has. Attributes that have the default of a newer opset can be removed; else the nearest older opset that has all
    attributes is declared, or the nearest newer one."""
    declared = model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))
    odd: dict[tuple[str, str], list[ir.Node]] = {}
    for node in (node for graph in walk.main_graphs(model) for node in graph if node.domain in ("", "ai.onnx")):
        known = schema.find(node.op_type, "", declared)
        for name in node.attributes if known is not None else ():
            if known is not None and name not in known.attributes and schema.opsets_with(node.op_type, name):
                odd.setdefault((node.op_type, name), []).append(node)
    if not odd:
        return None
    opsets = {key: schema.opsets_with(*key) for key in odd}
    has = [
        f"{op_type} has the attribute {name} "
        + (f"since opset {min(found)}" if min(found) > declared else f"up to opset {max(found)}")
        for (op_type, name), found in opsets.items()
    ]
    why = f". The file declares opset {declared}, but {first_few(has, _SHOWN)}"
    places = [(node, key) for key, nodes in odd.items() for node in nodes]
    if all(node.graph is model.graph and _has_later_default(node, *key, declared) for node, key in places):
        nodes = "for n in m.graph.node for a in list(n.attribute)"
        change = f"[n.attribute.remove(a) {nodes} if (n.op_type, a.name) in {[*odd]}]"
        return why, f"remove the attribute, which has its default value: {message_change(where, change)}"
    common = set.intersection(*map(set, opsets.values()))
    older = sorted((one for one in common if one < declared), reverse=True)
    for opset in (*older, *sorted(one for one in common if one > declared)):
        if _is_valid_at(model, opset):
            return why, _declaring(opset, where)
    return why, "export it again: no opset has all these attributes"


def _has_later_default(node: ir.Node, op_type: str, name: str, declared: int) -> bool:
    """Whether the attribute is newer than the declared opset, and has the value that the operator had without it."""
    later = next((one for one in schema.opsets_with(op_type, name) if one > declared), None)
    known = schema.find(op_type, "", later) if later is not None else None
    default = known.defaults.get(name) if known is not None else None
    attribute = node.attributes[name]
    if default is None or attribute.is_ref() or (op_type, name) in _CHANGED_WITHOUT:
        return False
    return exact(attribute) == exact(default)


def _hidden(model: ir.Model, where: str) -> tuple[str, str] | None:
    """Returns the reason and the fix if tensors in branches and bodies hide outer tensors; None if none does."""
    names = list(dict.fromkeys(value.name or "" for value in body_names.hidden(model)))
    if not names:
        return None
    path = pasted(where) if Path(where).suffix == ".onnx" else "MODEL"
    return (
        f". Tensors in branches and bodies have the names of outer tensors: {first_few(names, _SHOWN)}",
        f"give them names of their own: `onnxsmith check {path} --target onnxruntime --fix -o renamed.onnx`",
    )


def _conflict(model: ir.Model, said: str, where: str) -> Problem:
    """Returns the problem of a shape or type that strict inference refuses, with the node's label and the two sizes in
    words."""
    if _UNNAMED.search(said):
        said = _with_labels(model) or said
    found = operand_clashes.clash(model, said)
    if found is not None:
        is_file = Path(where).suffix == ".onnx"
        shown = f"; `onnxsmith inspect {pasted(where)} {pasted(found.item)}` shows it" if is_file else ""
        return Problem(
            "model/shape-conflict",
            _CLASH,
            where=f"{where}, {found.place}",
            why=f"{found.why}. {said}",
            fix=f"change {found.place}: no runtime computes the model as it is{shown}",
        )
    op_type, label, message = operand_clashes.blamed(said)
    return Problem(
        "model/shape-conflict",
        "a declared shape or type contradicts the one that its operator computes",
        where=f"{where}, {op_type} {label}" if op_type else where,
        why=f"{_plain(message)}{said}",
        fix=_look_at(label) if label else "correct the declared shape or type; runtimes differ in how they treat this",
    )


def _look_at(node: str) -> str:
    """Returns the fix for a node whose operands and declared results do not fit."""
    return (
        f"`onnxsmith inspect MODEL {pasted(node)}` shows its operands and their sizes: correct the one that is "
        "wrong where the model is made; or drop the declared shapes of intermediate tensors, if only they are wrong: "
        "`onnxsmith strip MODEL --what shapes -o stripped.onnx`"
    )


def _plain(said: str) -> str:
    """Rewrites onnx's message about two different sizes, ranks or dtypes as a sentence; returns "" for other
    messages."""
    for pattern, sentence in _DIFFERENCES:
        found = pattern.search(said)
        if found:
            numbers = found.groupdict()
            if "dtype" in numbers:
                numbers = {key: ir.DataType(int(number)).name.lower() for key, number in numbers.items()}
            return sentence.format(**numbers)
    return ""


def _with_labels(model: ir.Model) -> str:
    """Repeats strict inference with nameless nodes called after their results. Returns its message; "" if there is
    none."""
    copy = cloned(in_memory(model))
    for node in walk.all_nodes(copy):
        node.name = node.name or walk.node_label(node)
    try:
        _checker(copy)(full_check=True)
    except Exception as error:  # noqa: BLE001 — as above
        return _first_lines(str(error))
    return ""


def _checker(
    model: ir.Model, file: Path | None = None, message: onnx.ModelProto | None = None
) -> Callable[..., object]:
    # of a file with external data, onnx would check the data again, and refuse every link
    outside = any(isinstance(tensor, ir.ExternalTensor) for tensor in walk.tensors(model))
    if file is not None and file.suffix == ".onnx" and is_text(file.absolute()) and not outside:
        return partial(onnx.checker.check_model, str(file))

    @cache
    def light() -> onnx.ModelProto:
        return _declare_initializers(message or light_message(model))

    return lambda *, full_check: onnx.checker.check_model(light(), full_check=full_check)


def _declare_initializers(message: onnx.ModelProto) -> onnx.ModelProto:
    """Makes every initializer an input, too, as versions of the IR before 4 demand: runtimes load files without these.
    Returns the message itself, changed."""
    if message.ir_version >= walk.FIRST_WITH_CONSTANTS:
        return message
    declared = {value.name for value in message.graph.input}
    for tensor in message.graph.initializer:
        if tensor.name not in declared:
            message.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return message


def _first_lines(text: str, count: int = 3) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip() and not line.startswith("==>")]
    return " ".join(lines[:count])
