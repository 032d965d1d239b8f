"""Every change of an operator, up and down: the same numbers and attributes, or a refusal that names the operator."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import defs, helper
from onnx.reference import ReferenceEvaluator

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.surgery import opset_conversion
from tests.graph.operator_cases import OLDEST, Case, cases, changes, few, versions

MOST = 8
"""The most cases of one change in one direction. A choice: more take over half a second."""
ONNXRUNTIME = 26
"""The newest opset of which onnxruntime promises the numbers."""
_NO_KERNEL = "neither onnxruntime nor the reference has the operator at opset 22"
_BATCH = "opset 8 ran over a batch of sequences"
UNTESTED = {
    f"{op_type} {way}": _NO_KERNEL
    for op_type in ("GlobalLpPool", "MaxRoiPool", "Multinomial")
    for way in ("21 to 22", "22 to 21")
}
"""Changes without a case that runs in both opsets, each with the reason."""
REFUSED = {"Scan 8 to 9": _BATCH, "Scan 9 to 8": _BATCH}
"""Changes that cannot be made for any case, each with the reason."""
NOT_COMPARED = {
    "test_range_bfloat16_type": "it becomes a Loop of bfloat16, which onnxruntime lacks; the reference adds an axis",
}
"""Node tests whose numbers are not compared, by the beginning of their names, each with the reason."""
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
"""Operators that draw numbers: only shapes and dtypes are compared."""
MEANT = {"axis", "axes", "mode"}
"""Attributes that a change rewrites: an axis from the end, the names of modes."""
LEFT_OUT = {("MaxPool", "ceil_mode"), ("AveragePool", "ceil_mode")}
"""Attributes that are left out where that changes no number."""
CHANGES = changes()


def label(op_type: str, before: int, after: int) -> str:
    return f"{op_type} {before} to {after}"


def is_gone(op_type: str, version: int) -> bool:
    """Whether the opset no longer has the operator. GroupNormalization was deprecated where it appeared, to be changed
    later."""
    return defs.get_schema(op_type, version, "").deprecated and op_type != "GroupNormalization"


ROWS = [
    (op_type, *way)
    for op_type, since in CHANGES
    for way in ((since - 1, since), (since, since - 1))
    if min(way) >= OLDEST and not is_gone(op_type, way[0])
]


@pytest.mark.parametrize(("op_type", "before", "after"), ROWS, ids=[label(*row) for row in ROWS])
def test_a_change_keeps_the_numbers_or_is_refused(op_type: str, before: int, after: int) -> None:
    found = [verdict(op_type, case, after) for case in sources(op_type, before)]
    ran = [one for one in found if one is not None]
    name = label(op_type, before, after)
    if name in UNTESTED:
        assert not ran, "a case runs: remove the change from UNTESTED"
        return
    assert ran, f"no case of {name} runs"
    assert (True in ran) != (name in REFUSED), "every case is refused" if True not in ran else "a case is equal"


@pytest.mark.parametrize("op_type", sorted({op_type for op_type, _ in CHANGES}))
@pytest.mark.parametrize("up", [True, False])
def test_all_changes_in_a_row_keep_the_numbers_or_are_refused(op_type: str, up: bool) -> None:
    first, last = max(OLDEST, versions(op_type)[0]), ONNXRUNTIME
    if first >= last:
        return
    for case in sources(op_type, first if up else last)[: MOST // 2]:
        verdict(op_type, case, last if up else first)


def test_the_lists_name_changes_that_exist() -> None:
    names = {label(*row) for row in ROWS}
    assert names >= {*UNTESTED, *REFUSED}


@cache
def sources(op_type: str, version: int) -> list[Case]:
    """Some cases that are valid at an opset, also such as are written in an older form of a newer one."""
    found = [case.at(version) for case in cases(op_type)]
    later = [since for since in versions(op_type) if since > version]
    if later:
        found += [made for case in sources(op_type, later[0]) if (made := older(op_type, case, version)) is not None]
    return few(op_type, [case for case in found if is_valid(op_type, case.model)], MOST)


def older(op_type: str, case: Case, version: int) -> Case | None:
    """The case in an older form of its operator; None if it is refused, or written with other operators."""
    try:
        model = converted(case.model, version)
    except OnnxsmithError:
        return None
    if sum(node.op_type == op_type for node in model.graph.node) != 1:
        return None
    return Case(f"{case.name}, at {version}", model, case.feeds)


def converted(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    made = opset_conversion.convert(ir.serde.deserialize_model(model), version)
    return ir.serde.serialize_model(made)


def is_valid(op_type: str, model: onnx.ModelProto) -> bool:
    """Whether onnx's checker accepts a model; also if an operator is deprecated since the opset in which it appeared,
    like GroupNormalization."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except onnx.checker.ValidationError as error:
        return "is deprecated" in str(error) and op_type == "GroupNormalization"
    except onnx.shape_inference.InferenceError:
        return False
    return True


def verdict(op_type: str, case: Case, target: int) -> bool | None:
    """Converts a case. Returns True for equal results, False for a refusal, None if a model does not run."""
    expected = results(case)
    if expected is None:
        return None
    try:
        model = converted(case.model, target)
    except OnnxsmithError as error:
        said = f"{error.problem.where} {error.problem.why}"
        if error.problem.id != "export/opset" or not any(node.op_type in said for node in case.model.graph.node):
            raise
        return False
    text = f"{case.name}\n{onnx.printer.to_text(case.model)}\n{onnx.printer.to_text(model)}"
    assert model.opset_import[0].version == target, text
    assert is_valid(op_type, model), text
    assert lost(op_type, case.model, model) == [], text
    given = results(Case(case.name, model, case.feeds))
    if given is None or case.name.startswith(
        tuple(NOT_COMPARED)
    ):  # the runtimes lack the operator in one of the two opsets
        return None
    assert len(given) == len(expected)
    for one, other in zip(given, expected, strict=True):
        assert (alike if op_type in RANDOM else equal)(one, other), f"{text}\n{other}\n{one}"
    return True


def lost(op_type: str, before: onnx.ModelProto, after: onnx.ModelProto) -> list[str]:
    """The attributes of a node that the new form has too, and that are gone without being its default."""
    old = next(node for node in before.graph.node if node.op_type == op_type)
    new = next((node for node in after.graph.node if node.op_type == op_type), None)
    if new is None:
        return []
    known = defs.get_schema(op_type, after.opset_import[0].version, "").attributes
    kept = {attribute.name for attribute in new.attribute}
    return [
        attribute.name
        for attribute in old.attribute
        if attribute.name in known and attribute.name not in kept and attribute.name not in MEANT
        if (op_type, attribute.name) not in LEFT_OUT
        if not is_default(attribute, known[attribute.name].default_value)
    ]


def is_default(attribute: onnx.AttributeProto, default: onnx.AttributeProto) -> bool:
    return bool(default.type) and helper.get_attribute_value(attribute) == helper.get_attribute_value(default)


def results(case: Case) -> list[Any] | None:
    """What onnxruntime computes, without its optimisations, or what onnx's reference computes where onnxruntime lacks
    the operator or its opset. The reference knows only some of the older forms."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        assert case.model.opset_import[0].version <= ONNXRUNTIME
        session = onnxruntime.InferenceSession(
            case.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, case.feeds))
    except Exception:  # noqa: BLE001 — onnxruntime has no kernel, or does not know the dtype
        pass
    try:
        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(case.model).run(None, case.feeds))
    except Exception:  # noqa: BLE001 — the reference lacks the operator
        return None


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, list) or isinstance(other, list):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    if one is None or other is None:
        return one is other
    if not alike(one, other):
        return False
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype.kind in "OSUb":
        return bool((a == b).all())
    kind = np.complex128 if a.dtype.kind == "c" else np.float64
    exact = 1e-5 if a.dtype.itemsize >= 4 else 1e-3
    return bool(np.allclose(a.astype(kind), b.astype(kind), rtol=exact, atol=1e-5, equal_nan=True))


def alike(one: Any, other: Any) -> bool:
    return (np.shape(one), np.asarray(one).dtype) == (np.shape(other), np.asarray(other).dtype)
