"""The costs of models whose counts are known: from papers, or by a formula written out here."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith import inspect
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report, Text
from onnxsmith.base.report.parts.model_summary import Costs, MacTerm, short
from onnxsmith.cli.commands.inspect import Inspect
from onnxsmith.graph.files.text import from_text


def costs(model: ir.Model | str, **sizes: int) -> Costs:
    report = inspect(from_text(model) if isinstance(model, str) else model, costs=True, sizes=sizes)
    assert Report.from_json(report.to_json()) == report
    return report.part(Costs)


def store(model: ir.Model, *names: str) -> None:
    """Makes inputs initializers, of zeros."""
    for value in [value for value in model.graph.inputs if value.name in names]:
        assert value.shape is not None
        value.const_value = ir.tensor(np.zeros(value.shape.numpy(), np.float32), name=value.name)
        model.graph.inputs.remove(value)
        model.graph.register_initializer(value)


def graph(text: str, opset: int = 20, more: str = "") -> str:
    return f'<ir_version: 10, opset_import: ["": {opset}{more}]> {text}'


class Net:
    """Builds a network of zeros, layer by layer."""

    def __init__(self, *shape: int | str) -> None:
        self.input = self.last = ir.Value(name="x", shape=ir.Shape(shape), type=ir.TensorType(ir.DataType.FLOAT))
        self.nodes: list[ir.Node] = []
        self.weights: list[ir.Value] = []

    def weight(self, *shape: int) -> ir.Value:
        name = f"w{len(self.weights)}"
        self.weights.append(ir.Value(name=name, const_value=ir.tensor(np.zeros(shape, np.float32), name=name)))
        return self.weights[-1]

    def add(self, op: str, *inputs: ir.Value, scope: str = "", **attributes: int | list[int]) -> ir.Value:
        node = ir.node(op, list(inputs), attributes, name=f"{scope}/{op}{len(self.nodes)}")
        node.outputs[0].name = f"v{len(self.nodes)}"
        self.nodes.append(node)
        return node.outputs[0]

    def conv(self, x: ir.Value, inner: int, outer: int, kernel: int, stride: int, scope: str) -> ir.Value:
        """A convolution without a bias, and its normalisation."""
        y = self.add(
            "Conv", x, self.weight(outer, inner, kernel, kernel),
            strides=[stride] * 2, pads=[kernel // 2] * 4, kernel_shape=[kernel] * 2, scope=f"{scope}/conv",
        )  # fmt: skip
        return self.add("BatchNormalization", y, *(self.weight(outer) for _ in range(4)), scope=f"{scope}/bn")

    def model(self, y: ir.Value, *shape: int | str) -> ir.Model:
        y.shape, y.type = ir.Shape(shape), ir.TensorType(ir.DataType.FLOAT)
        made = ir.Graph([self.input], [y], nodes=self.nodes, initializers=self.weights, opset_imports={"": 20})
        return ir.Model(made, ir_version=10)


def resnet18(*shape: int | str) -> ir.Model:
    """The network of He et al., "Deep Residual Learning for Image Recognition" (2015), table 1, 18 layers."""
    net = Net(*shape)
    x = net.add("Relu", net.conv(net.input, 3, 64, 7, 2, "/stem"), scope="/stem")
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], scope="/stem")
    channels = 64
    for stage, width in enumerate((64, 128, 256, 512), 1):
        for block in range(2):
            scope, stride = f"/layer{stage}/{block}", 2 if stage > 1 and block == 0 else 1
            y = net.add("Relu", net.conv(x, channels, width, 3, stride, f"{scope}/a"), scope=scope)
            y = net.conv(y, width, width, 3, 1, f"{scope}/b")
            x = x if stride == 1 else net.conv(x, channels, width, 1, 2, f"{scope}/down")
            x, channels = net.add("Relu", net.add("Add", y, x, scope=scope), scope=scope), width
    x = net.add("Flatten", net.add("GlobalAveragePool", x, scope="/head"), scope="/head")
    y = net.add("Gemm", x, net.weight(1000, 512), net.weight(1000), transB=1, scope="/head")
    return net.model(y, shape[0], 1000)


def test_resnet18_has_the_published_counts() -> None:
    found = costs(resnet18(1, 3, 224, 224))
    assert (found.macs.at, found.parameters) == (1_814_073_344, 11_689_512)  # 1.81 G and 11.69 M at torchvision
    assert (found.by, found.counted, found.uncounted, found.unknown_shape) == ("scope", 21, {}, {})
    rows = {row.name: row for row in found.rows}
    assert rows["stem"].macs.at == 112 * 112 * 64 * 3 * 7 * 7
    assert rows["head"].parameters == 513_000
    assert sum(row.macs.at for row in found.rows if row.depth == 0) == found.macs.at
    assert sum(row.nodes for row in found.rows if row.depth == 0) == len(list(resnet18(1, 3, 224, 224).graph))
    # the first convolution's result is live with its normalised copy, and with the input, which the caller holds
    assert found.peak.bytes.at == 4 * (3 * 224 * 224 + 2 * 64 * 112 * 112)
    assert found.peak.always


def test_dynamic_sizes_stay_symbols_with_numbers_beside_them() -> None:
    found = costs(resnet18("batch", 3, "height", "width"), batch=2, height=224, width=224)
    assert found.macs.at == 2 * 1_814_073_344
    assert found.macs.terms is not None
    assert MacTerm(512_000, ("batch",)) in found.macs.terms
    assert len(found.macs.terms) <= 8  # five resolutions, the head and the two sides of a shortcut
    assert found.examples == ()
    assert found.sizes == {"batch": 2, "height": 224, "width": 224}
    assert costs(resnet18("batch", 3, "height", "width"), height=224, width=224).macs.at == 1_814_073_344


def test_an_encoder_layer_has_the_counts_of_its_formula() -> None:
    heads, width, wide = 4, 64, 256
    size = width // heads
    model = from_text(
        graph(
            f"""g (float[batch, seq, {width}] x, float[{width}, {width}] wq, float[{width}, {width}] wk,
                float[{width}, {width}] wv, float[{width}, {width}] wo, float[{width}, {wide}] w1,
                float[{wide}, {width}] w2, float[{width}] g1) => (float[batch, seq, {width}] y)
            <int64[4] split = {{0, 0, {heads}, {size}}}, int64[3] join = {{0, 0, {width}}}> {{
                q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)
                q4 = Reshape(q, split) k4 = Reshape(k, split) v4 = Reshape(v, split)
                qh = Transpose <perm = [0, 2, 1, 3]> (q4)
                kh = Transpose <perm = [0, 2, 3, 1]> (k4)
                vh = Transpose <perm = [0, 2, 1, 3]> (v4)
                s = MatMul(qh, kh) p = Softmax(s) o = MatMul(p, vh)
                o4 = Transpose <perm = [0, 2, 1, 3]> (o) o3 = Reshape(o4, join) a = MatMul(o3, wo)
                r = Add(x, a) n = LayerNormalization(r, g1)
                h = MatMul(n, w1) e = Gelu(h) f = MatMul(e, w2) y = Add(n, f)
            }}"""
        )
    )
    store(model, "wq", "wk", "wv", "wo", "w1", "w2", "g1")
    found = costs(model, batch=3, seq=10)
    linear, square = 4 * width * width + 2 * width * wide, 2 * width
    assert found.macs.terms == (
        MacTerm(linear, ("batch", "seq")),
        MacTerm(square, ("batch", "seq", "seq")),
    )
    assert found.macs.at == 3 * 10 * linear + 3 * 100 * square
    assert found.parameters == 4 * width * width + 2 * width * wide + width  # not the int64 shapes
    assert found.by == "operator"


FORMULAS = """
float[1,8,9,9] x, float[8,1,3,3] w | float[1,8,7,7] y | y = Conv <group = 8> (x, w)
float[1,8,9,9] x, float[6,4,3,3] w | float[1,6,7,7] y | y = Conv <group = 2> (x, w)
float[1,8,9,9] x, float[8,3,2,2] w | float[1,6,10,10] y | y = ConvTranspose <group = 2> (x, w)
uint8[1,8,9,9] x, uint8[6,8,1,1] w | int32[1,6,9,9] y | y = ConvInteger (x, w)
uint8[1,2,4,4] x, uint8[3,2,1,1] w, float s, uint8 z | uint8[1,3,4,4] y | y = QLinearConv (x, s, z, w, s, z, s, z)
uint8[5,7] x, uint8[7,3] w | int32[5,3] y | y = MatMulInteger (x, w)
uint8[5,7] x, uint8[7,3] w, float s, uint8 z | uint8[5,3] y | y = QLinearMatMul (x, s, z, w, s, z, s, z)
float[7,5] x, float[3,7] w | float[5,3] y | y = Gemm <transA = 1, transB = 1> (x, w)
float[7] x, float[7] w | float y | y = MatMul (x, w)
float[0,7] x, float[7,3] w | float[0,3] y | y = MatMul (x, w)
float[2,5,7] x, float[2,7,3] w | float[2,5,3] y | y = Einsum <equation = "bij, bjk -> bik"> (x, w)
float[2,1,5,7] x, float[4,7,3] w | float[2,4,5,3] y | y = Einsum <equation = "...ij,...jk"> (x, w)
float[2,3] x, float[3,4] w, float[4,5] z | float[2,5] y | y = Einsum <equation = "ab,bc,cd"> (x, w, z)
float[5,5] x | float[5] y | y = Einsum <equation = "ii->i"> (x)
float[6,2,3] x, float[2,20,3] w, float[2,20,5] r | float[6,2,2,5] y | y = LSTM <direction = "bidirectional"> (x, w, r)
float[6,2,3] x, float[1,15,3] w, float[1,15,5] r | float[6,1,2,5] y | y = GRU <hidden_size = 5> (x, w, r)
float[1,12,1] x | float[1,12,2] y | y = DFT (x)
float[1,64,1] x | float[1,5,17,2] y | k = Constant <value_int = 8>() n = Constant <value_int = 32>() y = STFT(x, k,, n)
"""
COUNTS = (
    8 * 49 * 9, 6 * 49 * 36, 8 * 81 * 12, 6 * 81 * 8, 3 * 16 * 2, 105, 105, 105, 7, 0, 210, 2 * 4 * 105, 2 * 120, 0,
    6 * 2 * 2 * 20 * 8, 6 * 2 * 15 * 8, 4 * 12 * (2 + 2 + 3), 5 * 4 * 32 * 10,
)  # fmt: skip


@pytest.mark.parametrize(("line", "count"), list(zip(FORMULAS.strip().splitlines(), COUNTS, strict=True)))
def test_formulas(line: str, count: int) -> None:
    inputs, output, call = line.split("|")
    found = costs(graph(f"g ({inputs}) => ({output}) {{ {call} }}").replace("LSTM <", "LSTM <hidden_size = 5, "))
    assert (found.macs.at, found.counted, found.unknown_shape) == (count, 1, {})


def test_attention_counts_scores_and_sums_over_all_keys() -> None:
    found = costs(
        graph(
            """g (float[1, 5, 32] q, float[1, 7, 16] k, float[1, 7, 24] v, float[1, 2, 3, 8] pk, float[1, 2, 3, 12] pv)
            => (float[1, 5, 48] y, float[1, 2, 10, 8] nk, float[1, 2, 10, 12] nv)
            { y, nk, nv = Attention <q_num_heads = 4, kv_num_heads = 2> (q, k, v, , pk, pv) }""",
            24,
        )
    )
    assert found.macs.at == 4 * 5 * 10 * 8 + 4 * 5 * 10 * 12


@pytest.mark.parametrize(("rule", "count"), [("linear", 2), ("delta", 3)])
def test_linear_attention_updates_and_reads_a_state_for_each_token(rule: str, count: int) -> None:
    found = costs(
        graph(
            f"""g (float[1, 5, 16] q, float[1, 5, 16] k, float[1, 5, 24] v) => (float[1, 5, 24] y, float[1, 2, 8, 12] s)
            {{ y, s = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "{rule}"> (q, k, v) }}""",
            27,
        )
    )
    assert (found.macs.at, found.uncounted) == (count * 5 * 2 * 8 * 12, {})


def test_operators_without_a_rule_are_named_and_never_silently_nothing() -> None:
    report = inspect(
        from_text(
            graph(
                """g (float[2, 3] x) => (float[2, 3] y) {
                a = com.acme.Foo(x) b = com.acme.Foo(a) c = com.acme.Foo(b) y = Relu(c) }""",
                more=', "com.acme": 1',
            )
        ),
        costs=True,
    )
    found = report.part(Costs)
    assert (found.uncounted, found.without_macs, found.unsized) == ({"com.acme::Foo": 3}, {"Relu": 1}, 3)
    said = [block.text for block in found.blocks() if isinstance(block, Text)]
    assert said == ["not counted: 3 com.acme::Foo", "not counted in the memory: 3 tensors of unknown size"]
    assert costs(graph("g (float[1,1,4,4] x, float[4] s) => (float[1,1,8,8] y) { y = Resize(x, , s) }")).uncounted == {
        "Resize": 1
    }


def test_unknown_shapes_are_said() -> None:
    found = costs(graph("g (float x, float[3, 4] w) => (float y) { h = com.acme.Foo(x) y = MatMul(h, w) }",
                        more=', "com.acme": 1'))  # fmt: skip
    assert (found.unknown_shape, found.macs.at) == ({"MatMul": 1}, 0)


def test_calls_of_local_functions_are_counted_one_by_one() -> None:
    found = costs("""
        <ir_version: 10, opset_import: ["": 20, "local": 1]>
        g (float[2, 4] x, float[4, 4] w) => (float[2, 4] y) { a = local.linear(x, w) b = local.outer(a, w) y = Relu(b) }
        <domain: "local", opset_import: ["": 20]> linear (p, q) => (r) { r = MatMul(p, q) }
        <domain: "local", opset_import: ["": 20, "local": 1]> outer (p, q) => (r) {
            s = local.linear(p, q) r = local.linear(s, q) }
    """)
    assert (found.macs.at, found.counted, found.uncounted) == (3 * 2 * 4 * 4, 3, {})


LOOP = """
g (float[2, 4] x, float[4, 4] w, int64 n, bool go) => (float[2, 4] y)
    <int64 five = {5}, int64 endless = {9223372036854775807}, bool yes = {1}> {
    [walk] y = Loop (COUNT, COND, x) <body = b (int64 i, bool c, float[2, 4] s) => (bool d, float[2, 4] t) {
        d = Identity(KEEP) t = MatMul(s, w)
    }>
}
"""


@pytest.mark.parametrize(
    ("count", "cond", "keep", "macs", "said"),
    [
        ("five", "", "c", "160", ""),
        ("five", "yes", "c", "160", ""),
        ("five", "go", "c", "160", "may end the loop earlier"),
        ("n", "yes", "c", "32 · trips_walk", "unknown"),
        ("", "go", "c", "32 · trips_walk", "unknown"),
        ("endless", "yes", "go", "32 · trips_walk", "unknown"),
    ],
)
def test_a_loop_is_counted_for_its_trips(count: str, cond: str, keep: str, macs: str, said: str) -> None:
    text = LOOP.replace("COUNT", count).replace("COND", cond).replace("KEEP", keep)
    found = costs(graph(text))
    assert str(found.macs) == macs
    assert [said in line for line in found.assumptions] == ([True] if said else [])
    assert (
        found.activations.at == 4 * (8 + 8) + 1
    )  # the loop's result, and in the body once: the product, the condition
    if "trips" in macs:
        assert found.macs.at == 32  # once
        assert costs(graph(text), trips_walk=3).macs.at == 96


def test_a_loop_along_a_dynamic_axis_and_a_scan_are_symbolic() -> None:
    found = costs(
        graph("""g (float[seq, 4] x, float[4] h, float[4, 4] w) => (float[4] y, float[seq, 4] all) {
            y, all = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] e) => (float[4] t, float[4] o) {
                m = MatMul(w, e) t = Add(s, m) o = Identity(t) }> (h, x) }""")
    )
    assert found.macs.terms == (MacTerm(16, ("seq",)),)
    found = costs(
        graph("""g (float[seq, 4] x, float[4] h, float[4, 4] w) => (float[4] y) <int64 zero = {0}> {
            s = Shape(x) n = Gather(s, zero)
            y = Loop (n, , h) <body = b (int64 i, bool c, float[4] p) => (bool d, float[4] t) {
                d = Identity(c) t = MatMul(w, p) }> }""")
    )
    assert found.macs.terms == (MacTerm(16, ("seq",)),)
    assert found.assumptions == ()


def test_the_larger_branch_is_counted_and_said() -> None:
    found = costs(
        graph("""g (float[8, 4] x, float[4, 4] w, bool c) => (float[8, 4] y) {
            [choose] y = If(c) <
                then_branch = a () => (float[8, 4] p) { p = MatMul(x, w) },
                else_branch = b () => (float[8, 4] q) { r = MatMul(x, w) q = MatMul(r, w) }> }""")
    )
    assert found.macs.at == 256
    assert found.assumptions == ("If choose: only else_branch was counted, the larger branch at these sizes",)
    assert found.peak.bytes.at == 4 * (32 + 16 + 32 + 32 + 32) + 1  # x, w, y, r and q; c


def test_the_peak_follows_which_tensors_are_still_read() -> None:
    long = costs(graph("""g (float[10] x) => (float[10] y) { a = Relu(x) b = Relu(a) c = Relu(b) y = Add(a, c) }"""))
    assert (long.peak.bytes.at, long.peak.node) == (4 * 40, "-> c")  # x, a, b, c; then x, a, c, y
    short_lived = costs(graph("g (float[10] x) => (float[10] y) { a = Relu(x) b = Relu(a) y = Relu(b) }"))
    assert short_lived.peak.bytes.at == 4 * 30
    half = costs(graph("g (float16[n, 10] x) => (float16[n, 10] y) { y = Relu(x) }"), n=7)
    assert half.peak.bytes.terms == (MacTerm(40, ("n",)),)
    assert half.peak.always


def test_a_peak_that_moves_with_the_sizes_is_bounded() -> None:
    found = costs(
        graph("""g (float[n] x, float[m] z) => (float[n] y, float[m] v) {
            a = Relu(x) b = Relu(a) y = Relu(b) c = Relu(z) d = Relu(c) v = Relu(d) }"""),
        n=10,
        m=1,
    )
    assert not found.peak.always
    assert found.peak.bytes.terms == (MacTerm(12, ("n",)), MacTerm(4, ("m",)))
    assert found.peak.bound.terms == (MacTerm(12, ("m",)), MacTerm(12, ("n",)))


def test_long_formulas_fall_back_to_the_sizes() -> None:
    inputs = ", ".join(f"float[n{i}, 4] x{i}" for i in range(40))
    nodes = " ".join(f"y{i} = MatMul(x{i}, w)" for i in range(40))
    outputs = ", ".join(f"float[n{i}, 4] y{i}" for i in range(40))
    found = costs(graph(f"g (float[4, 4] w, {inputs}) => ({outputs}) {{ {nodes} }}"))
    assert found.macs.terms is None
    assert found.macs.at == 16 * sum(found.sizes.values())
    assert len(found.examples) == 40


def test_running_statistics_scales_and_shared_weights_are_not_parameters_twice() -> None:
    found = costs(
        graph("""g (float[1, 2, 4] x) => (float[1, 2, 4] y)
            <float[2] a = {1, 1}, float[2] b = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}, float low = {0},
             float s = {1}, int8 z = {0}, int8[2, 1] q = {1, 2}, int64[1] one = {1}> {
            n = BatchNormalization(x, a, b, m, v) c = Clip(n, low) w = DequantizeLinear(q, s, z)
            p = Mul(c, w) again = Unsqueeze(a, one) y = Mul(p, again) }""")
    )
    assert found.parameters == 2 + 2 + 2  # a, b and q
    assert found.weight_bytes == 4 * 8 + 4 + 4 + 1 + 2 + 8


def test_unknown_names_of_dimensions_are_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "m.onnxtxt"
    file.write_text(graph("g (float[batch, 4] x) => (float[batch, 4] y) { y = Relu(x) }"), encoding="utf-8")
    with pytest.raises(OnnxsmithError) as caught:
        Inspect(str(file), dim=("bacth=2",)).run()
    assert caught.value.problem.id == "inspect/unknown-dim"
    assert "batch" in caught.value.problem.fix
    report = Inspect(str(file), costs=True, dim=("batch=0",)).run()
    assert report.part(Costs).peak.bytes.at == 0
    with pytest.raises(OnnxsmithError, match="no dimension"):
        inspect(from_text(graph("g (float[4] x) => (float[4] y) { y = Relu(x) }")), sizes={"n": 2})


def test_missing_weights_and_an_empty_graph_have_costs() -> None:
    model = from_text(graph("g (float[2, 3] x, float[3, 4] w) => (float[2, 4] y) { y = MatMul(x, w) }"))
    store(model, "w")
    model.graph.initializers["w"].const_value = ir.ExternalTensor(
        "nowhere.bin", 0, 48, ir.DataType.FLOAT, shape=ir.Shape([3, 4]), name="w"
    )
    assert (costs(model).macs.at, costs(model).parameters) == (24, 12)
    empty = costs(graph("g (float[2] x) => (float[2] x) { }"))
    assert (empty.macs.at, empty.peak.bytes.at, empty.rows) == (0, 8, ())


def test_ten_thousand_nodes_take_about_a_second() -> None:
    net = Net("batch", "seq", 16)
    weight, last = net.weight(16, 16), net.input
    for index in range(5000):
        last = net.add("Relu", net.add("MatMul", last, weight, scope=f"/l{index // 100}/b{index // 10}"), scope="/r")
    model = net.model(last, "batch", "seq", 16)
    plain = time.process_time()
    inspect(model)
    started = time.process_time()
    found = costs(model)
    assert time.process_time() - started < (started - plain) + 4
    assert found.macs.terms == (MacTerm(5000 * 256, ("batch", "seq")),)


def test_short_numbers() -> None:
    assert [short(n) for n in (0, 999, 1000, 999_499, 999_999, 1_814_073_344)] == [
        "0", "999", "1 K", "999 K", "1 M", "1.81 G",
    ]  # fmt: skip


PADDED = """<ir_version: 8, opset_import: ["": 17]>
g (float[b,2,t] x, float[3,2,1] w) => (float[b,3,n] y)
<int64[1] two = {2}, int64[1] eight = {8}, int64[5] none = {0,0,0,0,0}> {
    s = Shape(x) k = Gather(s, two) r = Mod(k, eight) d = Sub(eight, r) m = Mod(d, eight)
    p = Concat<axis = 0>(none, m) q = Cast<to = 7>(p) a = Pad(x, q) y = Conv(a, w)
}"""
PICKED = """<ir_version: 8, opset_import: ["": 17]>
g (float[t,2] x, float[2,3] w) => (float[k,3] y) <int64[1] one = {1}, float zero = {0}> {
    m = ReduceMax<axes = [1], keepdims = 0>(x) c = Greater(m, zero) a = Compress<axis = 0>(x, c) y = MatMul(a, w)
}"""


@pytest.mark.parametrize(("size", "padded"), [(64, 64), (500, 504)])
def test_a_size_that_inference_does_not_know_is_that_of_a_run(size: int, padded: int) -> None:
    found = costs(PADDED, b=1, t=size)
    assert found.macs.at == padded * 2 * 3
    assert found.examples == ()


def test_a_size_that_follows_from_elements_stays_an_example() -> None:
    found = costs(PICKED.replace("float[k,3] y", "float[?,3] y"), t=500)
    assert found.examples == ("a_dim_0",)
    assert found.macs.is_guess
    assert str(found.macs) == "6 · a_dim_0"
    marked = {row.name: (row.macs.is_guess, row.activations.is_guess) for row in found.rows}
    assert marked["MatMul"] == (True, True)
    assert marked["ReduceMax"] == (False, False)
    assert any("~384" in str(block) for block in found.blocks())
    found = costs(PICKED.replace("float[k,3] y", "float[?,3] y"), t=500, a_dim_0=7)
    assert (found.macs.at, found.macs.is_guess) == (42, False)


def test_without_sizes_all_that_depends_on_them_is_marked() -> None:
    found = costs(PADDED)
    assert found.macs.is_guess
    assert not costs(PADDED, b=1, t=64).macs.is_guess


FUSED = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
g (float[b,2,8,8] x, float[5,2,3,3] v) => (float[b,5,?,?] y) {
    a = com.microsoft.Inverse(x)
    y = Conv<kernel_shape = [3,3]>(a, v)
}"""


def fused(**sizes: int) -> Costs:
    model = from_text(FUSED)
    store(model, "v")
    return costs(model, **sizes)


def test_shapes_behind_an_operator_of_a_runtime_are_those_of_a_run() -> None:
    found = fused(b=3)
    assert found.macs.at == 3 * 6 * 6 * 5 * 2 * 9
    assert not found.macs.is_guess
    assert not found.unknown_shape
    assert any("were read from a run at these sizes" in one for one in found.assumptions)
    assert fused().macs.is_guess  # the run was at an example size


def test_an_attention_of_onnxruntime_that_makes_q_k_and_v() -> None:
    model = from_text("""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[b,s,8] x, float[8,24] w, float[24] c) => (float[b,s,8] y) {
            y = com.microsoft.Attention<num_heads = 2>(x, w, c)
        }""")
    store(model, "w", "c")
    assert costs(model, b=2, s=5).macs.at == 2 * 5 * 8 * 24 + 2 * 2 * 5 * 8 * 5


def test_a_name_of_an_output_is_a_size_of_a_run() -> None:
    model = from_text(PADDED)
    model.graph.outputs[0].shape = ir.Shape(["b", 3, "Convonnx::Conv_3_dim_2"])
    found = costs(model, b=1, t=500)
    assert (found.macs.at, found.examples) == (504 * 6, ())


def test_sizes_that_the_model_refuses_are_refused() -> None:
    model = graph("g (float[n,4] x) => (float[n,4] y) <float[12,4] p> { y = Add(x, p) }")
    text = model.replace("float[12,4] p", "float[12,4] p = {" + ",".join(["1"] * 48) + "}")
    with pytest.raises(OnnxsmithError, match="inspect/misfit-dim: the model does not run at n = 7") as caught:
        costs(text, n=7)
    assert "Add" in caught.value.problem.why
    assert not costs(text, n=12).assumptions


def test_a_size_beside_the_weights_is_refused() -> None:
    held = ",".join(["1"] * 32)
    text = graph(f"g (float[n,k] x) => (float[n,8] y) <float[4,8] w = {{{held}}}> {{ y = MatMul(x, w) }}")
    with pytest.raises(OnnxsmithError, match="inspect/misfit-dim") as caught:
        costs(text, k=5)
    assert caught.value.problem.fix == "give the size of the weights: --dim k=4"
    assert costs(text, k=4).examples == ("n",)


def test_a_total_over_an_unknown_number_of_runs_is_a_guess() -> None:
    text = graph("""g (float[4,4] x, int64 n) => (float[4,4] y) <bool on = {1}> {
        y = Loop(n, on, x) <body = body (int64 i, bool c, float[4,4] a) => (bool d, float[4,4] b) {
            d = Identity(c) b = MatMul(a, a) }>
    }""")
    found = costs(text)
    assert found.macs.is_guess
    assert found.macs.at == 64
    assert not costs(text, trips_y=3).macs.is_guess


LOST = graph(
    """g (float[1,4,h] x, float[4,4,1] w) => (float[1,4,u] z, float[7] y) <float[3] s = {1,1,2}, int64[1] k = {2}>
    { r = Resize<mode = "nearest">(x, , s) z = Conv(r, w) y = ReduceMax<keepdims = 0>(z, k) }"""
)


def test_declarations_of_a_file_are_inferred_again() -> None:
    """A tool wrote 2·(h - 1) + 1 for 2·h as an expression without its parentheses, and gave an output a wrong rank."""
    model = from_text(LOST)
    resized = next(value for node in model.graph for value in node.outputs if value.name == "r")
    resized.type, resized.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([1, 4, "floor(2.0*h - 1 + 1/2)"])
    found = costs(model, h=8)
    assert (found.macs.at, found.macs.is_guess) == (16 * 16, False)
    assert found.activations.at == 4 * (4 * 16 + 4 * 16 + 4)


def test_decimals_in_expressions_are_read() -> None:
    model = from_text(
        graph('g (float[1,4,"floor(1.5*h + 1/2)"] x, float[4,4,1] w) => (float[1,4,u] y) { y = Conv(x, w) }')
    )
    found = costs(model, h=8)
    assert (found.macs.at, found.macs.is_guess) == (16 * 12, False)


def test_example_sizes_fit_the_weights_and_are_large_enough() -> None:
    model = from_text(
        graph(
            """g (float[n,k] x, float[1,1,m] v) => (float[n,3] y, float[1,1,o] z)
            <float[5,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6}, float[1,1,100] c> { y = MatMul(x, w) z = Conv(v, c) }"""
        )
        .replace(", float[1,1,100] c", "")
        .replace("z = Conv(v, c)", "z = AveragePool<kernel_shape = [100]>(v)")
    )
    found = costs(model)
    assert found.sizes["k"] == 5
    assert found.sizes["m"] >= 100
    with pytest.raises(OnnxsmithError, match="inspect/misfit-dim"):
        costs(model, k=6)


def test_operators_of_a_runtime_have_the_shapes_of_their_standard_forms() -> None:
    model = from_text(
        graph(
            "g (uint8[n,4] x, uint8[4,6] w, float[1] s, float[1] t) => (float[n,6] y) "
            "{ a = com.microsoft.MatMulIntegerToFloat(x, w, s, t) y = Relu(a) }",
            more=', "com.microsoft": 1',
        )
    )
    found = costs(model, n=3)
    assert found.macs.at == 3 * 24
    assert not found.unknown_shape
