"""Quantises products to 8-bit floats (float8e4m3fn): weights per channel, activations with ranges from data."""

from __future__ import annotations

from collections.abc import Mapping

import ml_dtypes
import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.precision.forms.base import PRODUCTS, Form
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods.base import Layer, Method, Work, is_embedding
from onnxsmith.precision.methods.int8 import ENDLESS, endless, layers, namesakes, reconnect, touching
from onnxsmith.precision.scaled_blocks import Array

_NARROW = ml_dtypes.float8_e4m3fn
_LARGEST = float(ml_dtypes.finfo(_NARROW).max)  # type: ignore[no-untyped-call]
_STEPS = 127
"""The largest number of onnxruntime's symmetric int8, from whose scales the scales of float8 follow."""


class Float8(Method):
    """Puts pairs of QuantizeLinear and DequantizeLinear (QDQ) before the operands of products. The scale of a tensor
    maps its largest value to 448, the largest number of float8e4m3fn. Scales are symmetric, biases and results stay in
    float32. GPUs from compute capability 8.9 on multiply in this form; a CPU computes in float32.

    Form: https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/work-quantized-types.html
    """

    title = "float8 weights and activations"
    changes = "Conv, ConvTranspose, Gemm and MatMul"
    where = ", outside of branches and loop bodies"
    opset = 21
    needs_ranges = True
    has_forms = True
    for_speed = False

    def opset_why(self, form: Form) -> str:
        return "QuantizeLinear has a float8 result without a zero point from opset 21 on"

    def refusal(self, form: Form, target: str | None) -> Problem | None:
        if form.symmetric or target is None or target.startswith(("onnxruntime", "openvino")):
            return None
        return Problem(
            "quantize/target-form",
            f"{form.title} does not accept float8",
            why="it has no QuantizeLinear with float8",
            fix=f"give --to int8 --target {target}",
        )

    def layers(self, work: Work) -> list[Layer]:
        lookups = {node.name for node in work.model.graph if is_embedding(node)}
        return [layer for layer in layers(work) if layer.name not in lookups]

    def always(self, work: Work) -> Mapping[str, str]:
        near = touching(work.model, endless(work))
        return {layer.name: ENDLESS for layer in self.listed(work) if layer.name in near}

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        assert work.ranges is not None
        bad = endless(work)
        changed = {layer.name for layer in self.listed(work)} - keep - touching(work.model, bad)
        others = {node.name or "" for node in work.model.graph if node.op_type in PRODUCTS} - changed
        made = work.arithmetic.quantised(
            "static",
            others | namesakes(work.model, dict.fromkeys(PRODUCTS, "")),
            ranges={name: (one.low, one.high) for name, one in work.ranges.by_name.items() if name not in bad},
            per_channel=True,
            reduce_range=False,
            weights="QInt8",
            activations="QInt8",
            symmetric=True,
            operators=list(PRODUCTS),
            more={"QuantizeBias": False, "OpTypesToExcludeOutputQuantization": list(PRODUCTS)},
        )
        return _as_float8(reconnect(made, changed), work.model)


def _as_float8(made: ir.Model, original: ir.Model) -> ir.Model:
    """Changes and returns a model in symmetric int8: its pairs become float8, with weights from the original.

    The pairs have no zero points: onnxruntime 1.32 leaves out a Relu before a QuantizeLinear with a zero point in
    float8, as it may before one in uint8.
    """
    nodes = {node.name: node for node in original.graph}
    names, scales = Names(made), dict[ir.Value, ir.Value]()
    for node in made.graph:
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear") or node.domain:
            continue
        stored, scale = node.inputs[:2]
        assert stored is not None
        assert scale is not None
        if scale not in scales:
            wider = _numbers(scale) * np.float32(_STEPS / _LARGEST)
            scales[scale] = _constant(made, names.free(f"{scale.name}_float8"), wider)
        if stored.const_value is not None:
            use = next(iter(node.outputs[0].uses()))
            rounded = _rounded(_numbers(nodes[use.node.name].inputs[use.idx]), _numbers(scales[scale]), node)
            node.replace_input_with(0, _constant(made, names.free(f"{stored.name}_float8"), rounded))
        node.replace_input_with(1, scales[scale])
        node.resize_inputs(2)
        if node.op_type == "QuantizeLinear":
            node.attributes["output_dtype"] = ir.AttrInt64("output_dtype", ir.DataType.FLOAT8E4M3FN)
            node.outputs[0].dtype = ir.DataType.FLOAT8E4M3FN
    for name, value in list(made.graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del made.graph.initializers[name]
    return made


def _rounded(weight: Array, scale: Array, node: ir.Node) -> Array:
    """Returns the weight in steps of its scale, one for each index of the axis of the DequantizeLinear."""
    if scale.ndim:
        axis = node.attributes.get_int("axis", 1) % weight.ndim
        scale = scale.reshape([-1 if at == axis else 1 for at in range(weight.ndim)])
    return np.clip(weight / scale, -_LARGEST, _LARGEST).astype(_NARROW)


def _numbers(value: ir.Value | None) -> Array:
    assert value is not None
    assert value.const_value is not None
    found: Array = value.const_value.numpy()
    return found


def _constant(model: ir.Model, name: str, array: Array) -> ir.Value:
    value = ir.val(name, const_value=ir.tensor(array, name=name))
    model.graph.initializers[name] = value
    return value
