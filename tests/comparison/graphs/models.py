"""Models for the tests of `diff`, and copies of them with other names and another order of the nodes."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir

from onnxsmith.graph.files.load import from_proto, parse_text
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned

CHAIN = """
<ir_version: 10, opset_import: ["": 20]>
chain (float[N, 3, 16, 16] x) => (float[N, 10] y)
<float[8, 3, 3, 3] w1, float[8] b1, float[8] s, float[8] t, float[8] m, float[8] v, float[8, 8, 3, 3] w2,
 float[10, 8] w3>
{
    a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w1, b1)
    b = BatchNormalization <epsilon = 0.001> (a, s, t, m, v)
    c = Relu (b)
    d = Conv <pads = [1, 1, 1, 1], group = 1> (c, w2)
    e = LeakyRelu <alpha = 0.2> (d)
    f = Add (e, c)
    g = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (f)
    h = GlobalAveragePool (g)
    i = Flatten <axis = 1> (h)
    j = Gemm <transB = 1, alpha = 0.5> (i, w3)
    y = Softmax <axis = -1> (j)
}
"""

ATTENTION = """
<ir_version: 10, opset_import: ["": 20]>
attention (float[B, S, 16] x, bool[B, S] mask) => (float[B, S, 16] y, float[B, S] z)
<float[16, 16] wq, float[16, 16] wk, float[16, 16] wv, float[16, 16] wo, float[16] scale, float[16] bias,
 float[16, 64] up, float[64, 16] down,
 int64[1] last = {-1}, float root = {4.0}, float low = {-1000.0}, int64[1] two = {2}>
{
    n = LayerNormalization <axis = -1, epsilon = 0.00001> (x, scale, bias)
    q = MatMul (n, wq)
    k = MatMul (n, wk)
    v = MatMul (n, wv)
    kt = Transpose <perm = [0, 2, 1]> (k)
    s = MatMul (q, kt)
    sr = Div (s, root)
    mu = Unsqueeze (mask, last)
    ms = Where (mu, sr, low)
    p = Softmax <axis = 2> (ms)
    o = MatMul (p, v)
    r = MatMul (o, wo)
    h = Add (x, r)
    u = MatMul (h, up)
    g = Gelu <approximate = "tanh"> (u)
    d = MatMul (g, down)
    y = Add (h, d)
    z = ReduceMean <keepdims = 0> (y, two)
}
"""

TOWERS = """
<ir_version: 10, opset_import: ["": 20]>
towers (float[N, 4, 8, 8] x) => (float[N, 12, 8, 8] y, float[N, 4, 8, 8] z)
<float[4, 4, 1, 1] w, float[4, 4, 3, 3] u>
{
    a1 = Conv (x, w)
    a2 = Relu (a1)
    a3 = Conv <pads = [1, 1, 1, 1]> (a2, u)
    b1 = Conv (x, w)
    b2 = Relu (b1)
    b3 = Conv <pads = [1, 1, 1, 1]> (b2, u)
    c1 = Conv (x, w)
    c2 = Relu (c1)
    c3 = Conv <pads = [1, 1, 1, 1]> (c2, u)
    y = Concat <axis = 1> (a3, b3, c3)
    ab = Mul (a3, b3)
    z = Sub (ab, c3)
}
"""

NESTED = """
<ir_version: 10, opset_import: ["": 20, "local": 1]>
nested (float[3, 4] x, bool c, int64 n) => (float[3, 4] y, float[3, 4] last)
<float[4, 4] w, float[4] k>
{
    a = MatMul (x, w)
    b = Relu (a)
    d = If (c) <
        then_branch = yes () => (float[3, 4] t) {
            t0 = Add (b, k)
            t = local.act <slope = 0.3> (t0, b)
        },
        else_branch = no () => (float[3, 4] e) {
            e0 = Sub (a, k)
            e = Elu <alpha = 0.7> (e0)
        }
    >
    one = Constant <value = bool {1}> ()
    last = Loop (n, one, d) <
        body = step (int64 i, bool go, float[3, 4] s) => (bool still, float[3, 4] next) {
            still = Identity (go)
            s1 = MatMul (s, w)
            s2 = Sub (s1, b)
            next = Tanh (s2)
        }
    >
    y = local.act <slope = 0.1> (d, a)
}
<domain: "local", opset_import: ["": 20]>
act <slope: float = 0.5> (p, q) => (r) { l = LeakyRelu <alpha: float = @slope> (p) r = Sub (l, q) }
"""

TEXTS = {"chain": CHAIN, "attention": ATTENTION, "towers": TOWERS, "nested": NESTED}


def model(name: str, seed: int = 0) -> ir.Model:
    """One of the models, with random weights."""
    proto = parse_text(TEXTS[name], where=name)
    rng = np.random.default_rng(seed)
    for info in proto.graph.value_info:  # declared, and made by no node
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        array = rng.standard_normal(shape).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, info.name))
    del proto.graph.value_info[:]
    return from_proto(proto, where=name)


def disguised(source: ir.Model, seed: int = 0, *, ports: bool = False) -> ir.Model:
    """A copy with another name for every node and tensor, and another order of the nodes. With `ports`, inputs and
    outputs have other names, too."""
    made = cloned(source)
    rng = random.Random(seed)
    kept = set() if ports else {*made.graph.inputs, *made.graph.outputs}
    number = iter(rng.sample(range(100_000), 10_000))
    for graph in (*walk.graphs(made), *(function.graph for function in made.functions.values())):
        for value in {**dict.fromkeys(graph.inputs), **dict.fromkeys(graph.initializers.values())}:
            if value not in kept:
                value.name = f"v{next(number)}"
        for node in graph:
            node.name = f"n{next(number)}"
            for value in node.outputs:
                if value.name and value not in kept:
                    value.name = f"v{next(number)}"
        shuffle(graph, rng)
    return made


def shuffle(graph: ir.Graph, rng: random.Random) -> None:
    """Puts the nodes into another topological order."""
    left, done = list(graph), set()
    order = []
    while left:
        ready = [node for node in left if not any(one in left for one in before(node))]
        picked = rng.choice(ready)
        left.remove(picked)
        order.append(picked)
        done.add(picked)
    for node in order:
        graph.remove(node)
    graph.extend(order)


def before(node: ir.Node) -> set[ir.Node]:
    """The nodes that must stand before a node: those that it, or a body of it, reads from."""
    found: set[ir.Node] = set()
    inside = [node, *(inner for graph in walk.subgraphs(node) for inner in walk.nodes(graph))]
    for one in inside:
        found |= {made for value in one.inputs if value is not None and (made := value.producer()) is not None}
    for graph in walk.subgraphs(node):
        found |= {made for value in graph.outputs if (made := value.producer()) is not None}
    return found - set(inside)


Change = Callable[[ir.Model], None]
