"""Which rooms a model has, and what is in them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.scene import CONSTANT, INPUT, OUTPUT, STUB
from tests.viewer.models import HEAD, chain, contents, in_module, scene_of


def titles(model: ir.Model | str) -> list[tuple[str, str, str, int, int]]:
    found = scene_of(model)
    return [(room.title, room.kind, room.path, room.count, room.repeats) for room in found.scene.rooms]


def test_torch_modules() -> None:
    layer = ["Relu@layers.{}.act", "Abs@layers.{}", "Neg@layers.{}"]
    model = chain(["Exp", *(one.format(0) for one in layer), *(one.format(1) for one in layer)])
    for node in list(model.graph)[1:7]:
        scopes = node.metadata_props["pkg.torch.onnx.name_scopes"]
        calls = ["layers.0"] if "layers.0" in scopes else ["layers.1"]
        in_module(node, "", [*calls, f"{calls[0]}.act"] if "act" in scopes else calls)
    found = scene_of(model)
    assert [(r.title, r.kind, r.path, r.parent, r.count, r.repeats) for r in found.scene.rooms] == [
        ("g", "graph", "", -1, 8, 1),
        ("layers.0", "module", "layers.0", 0, 3, 2),
        ("layers.1", "module", "layers.1", 0, 3, 2),
    ]
    assert contents(found, found.scene.rooms[0]) == ["Exp", "layers.0", "layers.1", "Identity"]
    assert contents(found, found.scene.rooms[1]) == ["Relu", "Abs", "Neg"], "one node is no room"
    assert {one["path"] for one in found.scene.modules} == {"layers.0", "layers.0.act", "layers.1", "layers.1.act"}
    assert found.scene.modules[0]["type"] == "m.Act"


def test_scopes_of_names() -> None:
    ops = [f"{op}:/encoder/layer.{at}" for at in range(2) for op in ("Relu", "Abs", "Neg")]
    assert titles(chain(["Exp:/head", *ops]))[1:] == [
        ("encoder", "module", "encoder", 6, 1),
        ("layer.0", "module", "encoder/layer.0", 3, 2),
        ("layer.1", "module", "encoder/layer.1", 3, 2),
    ]


def test_nodes_of_unknown_origin() -> None:
    """What an optimiser made in the middle of a scope belongs to it; between two scopes, to neither."""
    model = chain(["Relu:/a", "Abs", "Neg", "Sin:/a", "Cos", "Tan:/b", "Exp:/b", "Relu", "Abs:/b"])
    assert [(path, count) for _, _, path, count, _ in titles(model)] == [("", 10), ("a", 4), ("b", 4)]


WEIGHTS = """g (float[N,4] x) => (float[N,4] y) <float[4,4] w = {1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1}> {
    own = Identity(w) turned = Transpose<perm = [1, 0]>(own) shared = Cast<to = 1>(w)
    [a_m] p = MatMul(x, turned) [a_n] q = MatMul(p, shared) [a_r] r = Relu(q)
    [b_i_m] s = MatMul(r, shared) [b_i_r] t = Relu(s) [b_i_q] u = Tanh(t)
    [b_o_m] v = MatMul(u, shared) [b_o_r] z = Relu(v) [b_o_q] y = Tanh(z) }"""


def in_scopes(text: str) -> ir.Model:
    """`b_o_m` becomes `/b/o/m`: ONNX text has no slashes in names."""
    model = from_text(HEAD + text)
    for node in model.graph:
        node.name = f"/{node.name.replace('_', '/')}" if node.name else node.name
    return model


def test_nodes_of_stored_tensors_stand_in_the_module_of_their_readers() -> None:
    """A chain of them too; one that several modules read stands in the nearest module around all of these."""
    found = scene_of(in_scopes(WEIGHTS))
    rooms = {room.path: contents(found, room) for room in found.scene.rooms}
    assert {"Identity", "Transpose"} <= set(rooms["a"])
    assert rooms[""].count("Cast") == 1
    only = scene_of(in_scopes(WEIGHTS.replace("MatMul(p, shared)", "MatMul(p, w)")))
    rooms = {room.path: contents(only, room) for room in only.scene.rooms}
    assert "Cast" in rooms["b"]
    assert "Cast" not in [*rooms[""], *rooms["b/i"], *rooms["b/o"]]


def test_repeated_blocks() -> None:
    found = titles(chain(["Exp", *["Relu", "Abs", "Neg", "Sin"] * 3, "Cos"]))
    assert found[1:] == [(f"block A ({n} of 3)", "block", f"block-A.{n}", 4, 3) for n in (1, 2, 3)]


def test_no_structure() -> None:
    assert titles(chain(["Relu", "Abs", "Neg"])) == [("g", "graph", "", 4, 1)]


def test_a_module_that_holds_everything_is_open() -> None:
    model = chain(["Relu@net.a", "Abs@net.a", "Neg@net.a", "Sin@net.b", "Cos@net.b", "Tan@net.b", "Exp@net.b"])
    list(model.graph)[-1].metadata_props.update(list(model.graph)[-2].metadata_props)
    found = scene_of(model)
    assert [room.path for room in found.scene.rooms] == ["", "net.a", "net.b"]
    assert found.aliases["net"] == 0


def test_a_module_that_is_entered_again() -> None:
    model = chain(["Relu@m", "Abs@m", "Neg@m", "Exp@n", "Sin@m", "Cos@m", "Tan@m"])
    found = scene_of(model)
    assert [(room.title, room.path) for room in found.scene.rooms[1:]] == [
        ("m (1 of 2)", "m (1 of 2)"),
        ("m (2 of 2)", "m (2 of 2)"),
    ]
    assert contents(found, found.scene.rooms[0]) == ["m (1 of 2)", "Exp", "m (2 of 2)", "Identity"]


BRANCHES = (
    HEAD
    + """g (bool c, float[N] x) => (float[N] y) {
        a = Relu(x)
        [choice] y = If (c) <then_branch = t () => (float[N] r) { r = Neg(a) },
                             else_branch = e () => (float[N] s) { q = Abs(x)
 s = Exp(q) }>
    }"""
)


def test_branches() -> None:
    found = scene_of(BRANCHES)
    model = found.scene
    assert [(room.kind, room.path, room.parent, room.count) for room in model.rooms] == [
        ("graph", "", -1, 5),
        ("branch", "choice/then_branch", 0, 1),
        ("branch", "choice/else_branch", 0, 2),
    ]
    (choice,) = [at for at, name in enumerate(model.nodes.name) if name == "choice"]
    assert model.nodes.bodies[choice] == [("then_branch", 1), ("else_branch", 2)]
    assert model.nodes.attributes[choice] == []
    assert {model.values.name[one] for one in model.captured[choice]} == {"a", "x"}, "what its branches read"
    then = model.rooms[1]
    captured = [ref for kind, ref in zip(then.items.kind, then.items.ref, strict=True) if kind == INPUT]
    assert [model.values.name[ref] for ref in captured] == ["a"], "a branch shows what it reads from outside"
    main = model.rooms[0]
    ways = [
        (main.items.ref[one], main.items.ref[other]) for one, other in zip(main.edges.from_, main.edges.to, strict=True)
    ]
    assert (model.values.producer[captured[0]], choice) in ways, "and so does the node that has it"


FUNCTIONS = """<ir_version: 10, opset_import: ["": 20, "local": 1]>
g (float[N] x) => (float[N] y) { a = local.Twice(x)\n y = local.Twice(a) }
<domain: "local", opset_import: ["": 20]> Twice (x) => (y) { y = Add(x, x) }"""


def test_functions() -> None:
    model = scene_of(FUNCTIONS).scene
    assert [(room.kind, room.path, room.parent, room.count) for room in model.rooms] == [
        ("graph", "", -1, 2),
        ("function", "local::Twice", 0, 1),
    ]
    assert model.nodes.bodies == [[("local::Twice", 1)], [("local::Twice", 1)], []]


def test_values_and_their_kinds() -> None:
    text = HEAD + "g (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 2}> { c = Constant<value_float = 2.0>()\n"
    model = scene_of(text + " t = Mul(x, w)\n y = Mul(t, c) }").scene
    kinds = dict(zip(model.values.name, model.values.kind, strict=True))
    assert kinds == {"x": 1, "w": 3, "c": 3, "t": 0, "y": 2}
    assert [model.types[at] for at in model.values.type] == [
        "float32[N, 2]", "float32[2]", "float32[]", "float32[N, 2]", "float32[N, 2]",
    ]  # fmt: skip
    assert [model.ops[at]["type"] for at in model.nodes.op] == ["Mul", "Mul"], "a Constant is a value, not a node"
    (w, c) = (model.constants[at] for at, kind in enumerate(model.values.kind) if kind == CONSTANT)
    assert (w.text, w.bytes, c.text) == ("[1.0, 2.0]", 8, "2.0")


def test_defaults_of_attributes() -> None:
    text = HEAD + "g (float[N,2] x) => (float[N,2] y) { y = Softmax<axis = 1>(x) }"
    assert scene_of(text).scene.nodes.attributes == [[("axis", "1", 0)]]
    assert scene_of(text.replace("<axis = 1>", "")).scene.nodes.attributes == [[("axis", "-1", 1)]]


def test_omitted_operands_and_results() -> None:
    text = HEAD + "g (float[N] x, float[] m) => (float[N] y) { y = Clip(x, , m) }"
    model = scene_of(text).scene
    assert model.nodes.inputs == [[0, -1, 1]]


def test_an_input_that_is_an_output_and_one_that_nobody_reads() -> None:
    found = scene_of(HEAD + "g (float[N] x, float[N] z) => (float[N] x, float[N] y) { y = Neg(x) }")
    room = found.scene.rooms[0]
    assert sorted(room.items.kind) == [0, INPUT, INPUT, OUTPUT, OUTPUT]


def test_a_constant_output() -> None:
    found = scene_of(HEAD + "g () => (float[2] y) <float[2] y = {1, 2}> { }")
    assert found.scene.rooms[0].items.kind == [OUTPUT]
    assert "the model has no nodes" in found.notes


def test_a_mask_is_named_beside_its_readers() -> None:
    lines = [f"v{at + 1} = Mul(v{at}, mask)" for at in range(20)]
    text = f"g (float[N] v0, float[N] mask) => (float[N] v20) {{ {chr(10).join(lines)} }}"
    room = scene_of(HEAD + text).scene.rooms[0]
    stubs = [at for at, kind in enumerate(room.items.kind) if kind == STUB]
    assert 15 < len(stubs) <= 20
    ends = dict(zip(room.edges.from_, room.edges.to, strict=True))
    assert all(room.items.row[ends[at]] - room.items.row[at] == 1 for at in stubs)


def test_weights_are_described_within_a_limit() -> None:
    from onnxsmith.viewer.model_scene import described

    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=size).astype(np.float32) for size in (100, 1000, 10_000)]
    arrays[0][3] = np.nan
    arrays[1][:500] = 0
    tensors = [ir.tensor(array) for array in arrays]
    found, notes = described(tensors, limit=5000)
    assert found[0].figures is not None
    assert found[0].figures["nan"] == 1
    assert sum(found[0].histogram) == 99
    assert found[1].figures is not None
    assert found[1].figures["zeros"] == 0.5
    assert sum(found[1].histogram) == 1000
    assert found[2].figures is None
    assert notes == [
        "no statistics of 1 weight (40 KB), because the limit was reached: 4.4 KB of other weights were read"
    ]


def test_odd_weights_are_described() -> None:
    from onnxsmith.viewer.model_scene import described

    arrays = [
        np.full(100, np.inf, np.float32), np.zeros((0, 3), np.float32), np.array(["a", "b"] * 40, object),
        np.arange(100, dtype=np.int64) - (1 << 40), np.tile(np.array([1e308, -1e308]), 40), np.ones(50, bool),
        np.ones(40, np.complex64), np.full(64, 3.0, np.float16),
    ]  # fmt: skip
    tensors = [
        ir.tensor(one) if one.dtype != object else ir.StringTensor([b"a"] * 80, shape=ir.Shape([80])) for one in arrays
    ]
    found, _ = described([*tensors, None])
    assert [sum(one.histogram) for one in found] == [0, 0, 0, 100, 0, 0, 0, 0, 0]
    assert found[0].figures is not None
    assert found[0].figures["inf"] == 100


def test_source_lines() -> None:
    model = from_text(HEAD + "g (float[N] x) => (float[N] y) { y = Relu(x) }")
    trace = 'File "net.py", line 7, in forward\n    return x.relu()'
    model.graph[0].metadata_props["pkg.torch.onnx.stack_trace"] = trace
    found = scene_of(model).scene
    assert found.sources == [{"file": "net.py", "line": 7, "text": "return x.relu()"}]
    assert found.nodes.source == [0]
