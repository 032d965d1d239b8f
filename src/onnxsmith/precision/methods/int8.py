"""Stores weights in 8 bits and quantises activations: with ranges from data, or when the model runs.

A tensor that a product reads in 8 bits may have other readers that stay in float32, such as the Add of a residual
connection. If a float32 node computes the tensor, its float32 form costs nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.words import several
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision.calibration_data import NONE
from onnxsmith.precision.channel_equalisation import Equalised, equalised
from onnxsmith.precision.forms.base import PRODUCTS, Form
from onnxsmith.precision.gptq_rounding import rounded
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods._gemm import written_out
from onnxsmith.precision.methods.base import ASKED, Layer, Method, Work, constant_bytes, is_embedding
from onnxsmith.precision.ranges import Ranges, clipped
from onnxsmith.precision.sum_overflow import overflowing
from onnxsmith.precision.weight_storage import Rounded, holders, store


def layers(work: Work) -> list[Layer]:
    """Returns the products, and the Gathers from a constant table, in float32."""
    return [Layer(node.name or "", node.op_type, constant_bytes(node)) for node in work.model.graph if is_layer(node)]


def always(work: Work) -> Mapping[str, str]:
    """Returns the layers whose tensors have no finite range, with the reason."""
    bad = endless(work)
    names = {layer.name for layer in layers(work)}
    return dict.fromkeys(names & touching(work.model, bad), "a value that it reads or makes is not finite")


def endless(work: Work) -> set[str]:
    """Returns the tensors without a finite range, such as a mask of -inf."""
    ranges = work.ranges.by_name if work.ranges is not None else {}
    return {name for name, one in ranges.items() if not one.largest < math.inf}


def touching(model: ir.Model, tensors: set[str]) -> set[str]:
    """Returns the nodes that read or compute any of the tensors."""
    return {
        node.name or ""
        for node in model.graph
        if any(value is not None and value.name in tensors for value in (*node.inputs, *node.outputs))
    }


def is_layer(node: ir.Node) -> bool:
    """Whether the node is a product in float32, or looks up rows of a constant table."""
    if is_embedding(node):
        return True
    floats = all(value is None or value.dtype == ir.DataType.FLOAT for value in node.inputs[:2])
    return node.op_type in PRODUCTS and not node.domain and floats


def apart(model: ir.Model, keep: Keep) -> set[str]:
    """Returns the nodes, layers aside, that are not next to a quantised layer, because converting for them alone costs
    accuracy and time. Also returns products and Gathers that are no layers, and readers of graph outputs: the quantiser
    would give an output the range of a Relu that reads it."""
    beside: set[ir.Value | None] = set()
    for node in model.graph:
        if is_layer(node) and node.name not in keep:
            beside.update((*node.inputs, *node.outputs))
    beside.discard(None)
    results = set(model.graph.outputs)
    return {
        node.name or ""
        for node in model.graph
        if not is_layer(node)
        and (
            node.op_type in ("Gather", *PRODUCTS)
            or not results.isdisjoint(node.inputs)
            or beside.isdisjoint((*node.inputs, *node.outputs))
        )
    }


def namesakes(model: ir.Model, operators: Mapping[str, str]) -> set[str]:
    """Returns the nodes with the name of one of the operators but another domain. onnxruntime's quantiser ignores
    domains, and mistakes ONNX's Attention for its own."""
    return {
        node.name or "" for node in model.graph if node.op_type in operators and node.domain != operators[node.op_type]
    }


def addends(model: ir.Model) -> set[str]:
    """Returns the Adds of a constant, such as the bias after a MatMul."""
    return {
        node.name or ""
        for node in model.graph
        if node.op_type == "Add" and any(one is not None and one.const_value is not None for one in node.inputs)
    }


WHOLE = "ranges that hold each value"
CLIPPED = "ranges with the least squared error"
EQUALISED = "equalised channels, with the least squared error"
ALONE = "products alone, with the least squared error"
EQUALISED_ALONE = "products alone, equalised channels, with the least squared error"
WEIGHTS = "8 bits for the weights alone"
FLOATS = "8 bits for the weights alone, which are floats again before they are multiplied"
ENDLESS = "a value that it reads or makes is not finite"
FULL = "the sum of its bias and its products does not fit into 32 bits"
_FLOAT_RESULTS = {"OpTypesToExcludeOutputQuantization": ["Gemm", "MatMul"]}
"""Options if tensors between products stay in float32: the kernels of these products then give unrounded results."""
_CLIPPED_ON = 16
"""Samples on which ranges are narrowed. A choice: each sample runs nine quantisers for each tensor."""


class Int8(Method):
    """Puts pairs of QuantizeLinear and DequantizeLinear (QDQ) around products and the operators between them, and
    quantises weights per channel. The ranges of activations are the least and the greatest value in calibration. Layers
    whose activations need more than 8 bits store their weights in 8 bits and compute in float32, and so do recurrent
    layers, tables that are added, and layers in branches and loop bodies."""

    title = "int8 weights and activations"
    changes = "Conv, ConvTranspose, Gemm, MatMul, Gather from a constant table, and large constants of other nodes"
    opset = 13
    needs_ranges = True
    has_forms = True

    def opset_why(self, form: Form) -> str:
        return "QuantizeLinear and DequantizeLinear have a scale for each channel from opset 13 on"

    def schemes(self, work: Work) -> tuple[str, ...]:
        return WHOLE, CLIPPED, EQUALISED, ALONE, EQUALISED_ALONE

    def offers(self, work: Work, scheme: str) -> bool:
        return scheme not in (EQUALISED, EQUALISED_ALONE) or not _equalised(work).why_not

    def reference(self, work: Work) -> ir.Model:
        return _equalised(work).model if work.scheme in (EQUALISED, EQUALISED_ALONE) else work.model

    def ways_to_keep(self, work: Work) -> tuple[str, ...]:
        return (WEIGHTS, FLOATS, "") if work.form.folds_casts else (WEIGHTS, "")

    def named_way(self, work: Work) -> str:
        return work.kept_as if work.kept_as == FLOATS != work.scheme else ""

    def last_scheme(self, work: Work) -> str:
        return FLOATS

    def layers(self, work: Work) -> list[Layer]:
        held = _held(work)
        near = touching(work.model, endless(work))
        found = []
        for node in walk.nodes(work.model.graph):
            name = node.name or ""
            if node.graph is work.model.graph and is_layer(node):
                alone = ASKED if name in work.alone else ENDLESS if name in near else ""
                found.append(Layer(name, node.op_type, constant_bytes(node), alone if name in held else ""))
            elif name in held:
                inside = node.graph is not work.model.graph
                why = "the layer is in a branch or a loop body" if inside else f"{node.op_type} computes in float32"
                found.append(Layer(name, node.op_type, held[name], why))
        return found

    def stored(self, work: Work, keep: Keep) -> Keep:
        layers = self.listed(work)
        if work.scheme == FLOATS:
            found = {layer.name for layer in layers} - keep
        else:
            found = {layer.name for layer in layers if layer.weights_alone} - keep
            found |= keep - work.always if work.kept_as in (WEIGHTS, FLOATS) else set()
        return frozenset(found & _held(work).keys())

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        stored = self.stored(work, keep)
        is_narrow = work.scheme != FLOATS and any(
            one.name not in keep and not one.weights_alone for one in self.listed(work)
        )
        made = self._quantised(work, keep) if is_narrow else cloned(self.reference(work))
        if not stored:
            return made
        # Without folding, a Cast and a Mul would run each time.
        if not work.form.folds_casts:
            return store(made, stored, by_cast=False)
        if FLOATS not in (work.kept_as, work.scheme):
            return store(made, stored, by_cast=True)
        weights = _rounded(work, self.reference(work))
        return store(made, stored, by_cast=True, for_kernels=False, rounded=weights)

    def _quantised(self, work: Work, keep: Keep) -> ir.Model:
        bad = endless(work)
        form = work.form
        alone = work.scheme in (ALONE, EQUALISED_ALONE)
        operators = [*PRODUCTS, "Gather", *(() if alone else form.around)]
        floats = keep | {one.name for one in self.listed(work) if one.weights_alone}
        exclude = {*floats, *apart(work.model, floats), *touching(work.model, bad)}
        exclude |= set() if form.quantises_addends else addends(work.model)
        exclude |= namesakes(work.model, dict.fromkeys(operators, ""))
        made = work.arithmetic.quantised(
            "static",
            exclude,
            of=_equalised(work).form if work.scheme in (EQUALISED, EQUALISED_ALONE) else None,
            ranges={name: (one.low, one.high) for name, one in _ranges(work).by_name.items() if name not in bad},
            per_channel=form.per_channel,
            reduce_range=form.seven_bits(),
            weights="QInt8",
            activations=form.activations,
            symmetric=form.symmetric,
            operators=operators,
            more={**form.more, **(_FLOAT_RESULTS if alone else {})},
        )
        narrow = {node.name or "" for node in work.model.graph if node.op_type in operators} - exclude
        return reconnect(made, narrow)

    def always(self, work: Work) -> Mapping[str, str]:
        ranges = work.ranges.by_name if work.ranges is not None else {}
        near, full = (
            touching(work.model, endless(work)),
            overflowing(work.model, ranges, per_channel=work.form.per_channel),
        )
        reasons = dict.fromkeys(near, ENDLESS) | dict.fromkeys(full - near, FULL)
        listed = [layer.name for layer in self.listed(work) if not layer.weights_alone]
        return {name: reasons[name] for name in listed if name in reasons}

    def said(self, work: Work) -> tuple[str, ...]:
        if work.scheme not in (EQUALISED, EQUALISED_ALONE):
            return ()
        changed = _equalised(work).changed
        return (f"the channels of {several(len(changed), 'activation')} were equalised: {'; '.join(changed)}",)


def _held(work: Work) -> dict[str, int]:
    """Returns the nodes with constants that can be stored in 8 bits, and the bytes of these constants; found once."""
    if work.held is None:
        work.held = {
            node.name or "": sum(value.const_value.nbytes for value in values if value.const_value is not None)
            for node, values in holders(work.model)
        }
    return work.held


def _rounded(work: Work, model: ir.Model) -> dict[str, Rounded]:
    """Returns the weights of layers, rounded with data; once for the given and once for the equalised model."""
    if work.calibration is NONE:
        return {}
    form = "given" if model is work.model else "equalised"
    if form not in work.rounded:
        assert work.runtime is not None
        samples = itertools.islice(work.calibration, _CLIPPED_ON)
        with stage("round"):
            work.rounded[form] = rounded(model, work.runtime, samples, list(_held(work)))
    return work.rounded[form]


def _equalised(work: Work) -> Equalised:
    """Returns the model with equalised channels; made once."""
    if work.equalised is None:
        assert work.runtime is not None
        with stage("equalise"):
            work.equalised = equalised(work.model, work.runtime, work.calibration)
    return work.equalised


def _ranges(work: Work) -> Ranges:
    """Returns the ranges of the scheme. Narrowed ranges are measured once for a model."""
    assert work.ranges is not None
    assert work.runtime is not None
    if work.scheme in ("", WHOLE):
        return work.ranges
    held = _equalised(work) if work.scheme in (EQUALISED, EQUALISED_ALONE) else work
    if held.clipped is None:
        assert held.ranges is not None
        samples = itertools.islice(work.calibration, _CLIPPED_ON)
        tensors = _read_by_products(held.model)
        held.clipped = clipped(held.model, held.ranges, tensors, work.runtime, samples)
    return held.clipped


def _read_by_products(model: ir.Model) -> list[str]:
    """Returns the activations that products read."""
    found = (value for node in model.graph if node.op_type in PRODUCTS for value in node.inputs[:2])
    return list(dict.fromkeys(one.name or "" for one in found if one is not None and one.const_value is None))


_CONTRIB = "com.microsoft"
_OPERATORS = {
    "MatMul": "", "Gemm": "", "LSTM": "", "Gather": "", "Attention": _CONTRIB, "EmbedLayerNormalization": _CONTRIB,
}  # fmt: skip
"""Operators, with their domains, for which onnxruntime has kernels on a CPU. Conv is left out, because ConvInteger is
slower there than Conv in float32 (onnxruntime issue #6732)."""


class Int8Dynamic(Method):
    """Gives weights 8 bits. Each run measures the range of an activation before it quantises the activation. No data is
    needed."""

    title = "int8 weights, activations quantised at run time"
    changes = "MatMul, Gemm, LSTM, Attention and Gather with constant weights"
    where = ", outside of branches and loop bodies"
    opset = 11

    def opset_why(self, form: Form) -> str:
        return "DynamicQuantizeLinear exists from opset 11 on"

    def layers(self, work: Work) -> list[Layer]:
        return [
            Layer(node.name or "", node.op_type, constant_bytes(node))
            for node in work.model.graph
            if _OPERATORS.get(node.op_type) == node.domain and (_has_weight(node) or is_embedding(node))
        ]

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        return work.arithmetic.quantised(
            "dynamic",
            {*keep, *_lookups(work.model), *namesakes(work.model, _OPERATORS)},
            of=written_out,
            operators=list(_OPERATORS),
            per_channel=work.form.per_channel,
            reduce_range=work.form.seven_bits(),
            weights="QInt8",
        )


def _lookups(model: ir.Model) -> set[str]:
    """Returns the Gathers whose table is not constant: quantising it only for them costs time."""
    return {node.name or "" for node in model.graph if node.op_type == "Gather" and not is_embedding(node)}


def _has_weight(node: ir.Node) -> bool:
    if node.op_type == "Gather":
        return False
    return any(
        value is not None and value.const_value is not None and value.dtype == ir.DataType.FLOAT
        for value in node.inputs[1:]
    )


def reconnect(model: ir.Model, narrow: Collection[str]) -> ir.Model:
    """Changes and returns the model: float32 nodes read the result of a float32 node directly, not its rounded form.
    `narrow` are the names of the nodes that compute in 8 bits.

    Not reconnected:
    1. A tensor that a node in `narrow` computes: an 8-bit kernel has no float32 result.
    2. A graph output, because its name belongs to the rounded form.
    """
    for node in model.graph:
        source = node.inputs[0] if node.op_type == "QuantizeLinear" and not node.domain else None
        if source is None or source.const_value is not None:
            continue
        maker = source.producer()
        if maker is not None and maker.name in narrow:
            continue
        for back in [use.node for use in node.outputs[0].uses() if use.node.op_type == "DequantizeLinear"]:
            for use in list(back.outputs[0].uses()):
                if use.node.name not in narrow and use.node.op_type != "QuantizeLinear":
                    use.node.replace_input_with(use.idx, source)
    return model
