"""Operators that no test case shows: asked about with made-up operands, to learn only whether a target knows them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

import onnx
import onnx_ir as ir
from onnx import helper

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.load import from_proto
from onnxsmith.runtimes.base import Runtime
from onnxsmith.targets.judges.base import Judge

_UNKNOWN = re.compile(
    r"does not know the operator|does not have the operator|Plugin not found|is not a registered function/op|"
    r"No Op registered for|has no conversion for the operator|UNSUPPORTED_NODE: \w+(;|$)"
)
"""What targets say of an operator that they do not know; anything else may be about the made-up operands."""
_BY_NAME = "UNSUPPORTED_NODE: "
_FLOAT = "tensor(float)"


def is_unknown(op: str, why: str) -> bool:
    """Whether a refusal says that the target does not know the operator itself, not one in its branch."""
    found = _UNKNOWN.search(why)
    return found is not None and (_BY_NAME not in found[0] or f"{_BY_NAME}{op.rpartition('::')[2]}" in why)


def unseen(judge: Judge, seen: Collection[str], runtime: Runtime | None) -> Iterator[dict[str, Any]]:
    """A line for each operator without a test case that the target takes, says that it does not know, or lists among
    its kernels."""
    for name, model in _models():
        if name in seen:
            continue
        domain, _, op = name.rpartition("::")
        if runtime is not None and runtime.kernels(domain, op):
            yield _line(name, model, "")
            continue
        try:
            refusal = judge.ask(from_proto(model, where=name)).refusal
        except OnnxsmithError:
            continue
        if refusal is None or is_unknown(name, refusal.why):
            yield _line(name, model, refusal.why[:300] if refusal is not None else "")


def _line(name: str, model: onnx.ModelProto, why: str) -> dict[str, Any]:
    return {"op": name, "case": "made-up operands", "since": model.opset_import[-1].version, "dtypes": {},
            "operands": [], "results": [], "attributes": {}, "rank": None, "constants": [], "dynamic": "",
            "changed": {}, "taken": not why, "why": why, "limit": ""}  # fmt: skip


def _models() -> Iterator[tuple[str, onnx.ModelProto]]:
    every = sorted(onnx.defs.get_all_schemas_with_history(), key=lambda one: one.since_version)
    latest = {(one.domain, one.name): one for one in every if not one.deprecated}
    for (domain, op), found in sorted(latest.items()):
        inputs = [_dtype(one.types) for one in found.inputs[: found.min_input]]
        outputs = [_dtype(one.types) for one in found.outputs[: max(found.min_output, 1)]]
        attributes = {name: _dummy(one.type) for name, one in found.attributes.items() if one.required}
        if None not in (*inputs, *outputs, *attributes.values()):
            yield _name(domain, op), _model(domain, op, found.since_version, inputs, outputs, attributes)
    for found in rooms.members("onnxsmith.runtimes", Runtime)["onnxruntime"].schemas(["com.microsoft"]):
        yield f"com.microsoft::{found['name']}", _model("com.microsoft", found["name"], 1, [_FLOAT], [_FLOAT], {})


def _name(domain: str, op: str) -> str:
    return f"{domain}::{op}" if domain else op


def _dtype(types: Collection[str]) -> str | None:
    return next((one for one in (_FLOAT, *sorted(types)) if one in types and one.startswith("tensor(")), None)


def _dummy(kind: onnx.defs.OpSchema.AttrType) -> Any:
    kinds = onnx.defs.OpSchema.AttrType
    return {kinds.INT: 1, kinds.INTS: [1], kinds.FLOAT: 1.0, kinds.FLOATS: [1.0], kinds.STRING: "a",
            kinds.STRINGS: ["a"]}.get(kind)  # fmt: skip


def _model(
    domain: str, op: str, version: int, inputs: Any, outputs: Any, attributes: dict[str, Any]
) -> onnx.ModelProto:
    ports = [
        [_port(f"{kind}{at}", dtype) for at, dtype in enumerate(found)]
        for kind, found in (("x", inputs), ("y", outputs))
    ]
    node = helper.make_node(
        op, [one.name for one in ports[0]], [one.name for one in ports[1]], domain=domain, **attributes
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(domain, version)][0 if domain else 1 :]
    made = helper.make_model(helper.make_graph([node], "g", *ports), opset_imports=imports)
    made.ir_version = 8
    return made


def _port(name: str, dtype: str) -> onnx.ValueInfoProto:
    names = {"float": "FLOAT", "double": "DOUBLE", "bool": "BOOL", "string": "STRING"}
    code = ir.DataType[names.get(dtype[7:-1], dtype[7:-1].upper())]
    return helper.make_tensor_value_info(name, int(code), [2, 3])
