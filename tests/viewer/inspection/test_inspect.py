"""What `inspect` says of models whose facts are known: outline, nodes, names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Facts, Report, Table
from onnxsmith.base.report.parts.item_views import ModelText, NodeTable, NodeView, Operand, TensorView
from onnxsmith.base.report.parts.model_summary import Costs, MacTerm, ModelSummary, Module
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.inspect import Inspect
from onnxsmith.graph.files.load import Source
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.viewer.inspection.inspect import inspect

BRANCHES = """
<ir_version: 10, opset_import: ["": 20, "local": 1], producer_name: "by hand", producer_version: "1">
main (float[N, 3] x, bool c) => (float[N, 3] y) <float[1] w = {2.0}> {
    [add] a = Add(x, w)
    [choose] y = If(c) <
        then_branch = yes () => (float[N, 3] t) { [call] t = local.twice(a) },
        else_branch = no () => (float[N, 3] e) {
            [inner] e = If(c) <
                then_branch = deep () => (float[N, 3] d) { d = Relu(a) },
                else_branch = flat () => (float[N, 3] f) { f = Neg(a) }
            >
        }
    >
}
<domain: "local", opset_import: ["": 20]>
twice (p) => (q) { [two] k = Constant <value = float {2.0}> () [times] q = Mul(p, k) }
"""

MULTIPLYING = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N, 8, 32, 32] x, float[6, 4, 3, 3] w, float[8, 4, 2, 2] t, float[4, 16] a, float[16, 5] b, float[5] d, bool c)
=> (float[N, 8, 64, 64] up, float[N, 6, 30, 30] z, float[4, 5] m) {
    z = Conv <group = 2> (x, w)
    up = ConvTranspose <group = 2, strides = [2, 2]> (x, t)
    h = MatMul(a, b)
    n = Gemm(a, b, d)
    m = Add(h, n)
    unused = If (c) <
        then_branch = one () => (float[4, 5] r) { r = MatMul(a, b) },
        else_branch = two () => (float[4, 5] s) { s = MatMul(a, b) }
    >
}
"""


def same(report: Report) -> Report:
    """The report after it went through JSON and showed itself."""
    back = Report.from_json(report.to_json())
    assert back == report
    assert all(list(part.blocks()) for part in back.parts)
    return back


def summary(source: Source) -> ModelSummary:
    return same(inspect(source)).part(ModelSummary)


def problem_of(source: Source, name: str | None = None) -> OnnxsmithError:
    with pytest.raises(OnnxsmithError) as caught:
        inspect(source, name=name)
    return caught.value


def test_the_outline_counts_subgraphs_and_functions() -> None:
    report = same(inspect(from_text(BRANCHES)))
    found = report.part(ModelSummary)
    assert report.verdict is Verdict.DONE
    assert not report.problems
    assert (found.producer, found.ir_version, found.graph) == ("by hand 1", 10, "main")
    assert found.opsets == {"": 20, "local": 1}
    assert (found.nodes, found.constant_nodes) == (7, 1)
    assert report.headline.startswith("main: 7 nodes and 1 Constant, 1 parameter, ")
    assert (found.operators["If"], found.operators["Constant"]) == (2, 1)
    assert (found.subgraphs, found.nesting) == (4, 2)
    (function,) = found.functions
    assert (function.name, function.inputs, function.nodes, function.calls) == ("local::twice", 1, 1, 1)
    assert found.foreign == {}
    assert [(port.name, port.type) for port in found.inputs] == [("x", "float[N,3]"), ("c", "bool[]")]
    assert [(w.where, w.dtype, w.tensors, w.elements, w.bytes) for w in found.weights] == [
        ("initializers", "float", 1, 1, 4),
        ("constants", "float", 1, 1, 4),
    ]


def test_shapes_are_no_parameters() -> None:
    """The outline, its headline and its costs count the same parameters."""
    made = from_text("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3] x) => (float[3,2] y) <float[2] b = {1, 2}, int64[2] shape = {3, 2}>
        { r = Reshape(x, shape) y = Add(r, b) }""")
    report = same(inspect(made, costs=True))
    assert report.part(ModelSummary).parameters == report.part(Costs).parameters == 2
    assert report.headline == "g: 2 nodes, 2 parameters, 1 in, 1 out"
    shown = next(iter(report.part(ModelSummary).blocks()))
    assert isinstance(shown, Facts)
    assert ("parameters", "2") in shown.rows


def test_an_input_with_an_initializer_has_a_default() -> None:
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2] x, float[2] b) => (float[2] y) { y = Add(x, b) }""")
    proto.graph.initializer.append(helper.make_tensor("b", TensorProto.FLOAT, [2], [1.0, 2.0]))
    assert [(port.name, port.default) for port in summary(proto).inputs] == [("x", False), ("b", True)]


def test_foreign_operators_are_named() -> None:
    report = same(
        inspect(
            from_text("""<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
                g (float[2] x) => (float[2] y) { y = com.acme.Sharpen(x) }""")
        )
    )
    assert report.part(ModelSummary).foreign == {"com.acme": ("Sharpen",)}
    assert any("com.acme" in note for note in report.notes)
    assert any("no weights" in note for note in report.notes)


def test_contradicting_shapes_are_a_problem_and_an_invalid_model_raises() -> None:
    wrong = from_text("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2, 3] x) => (float[5, 7] y) { y = Relu(x) }""")
    assert [problem.id for problem in same(inspect(wrong)).problems] == ["model/shape-conflict"]
    invalid = from_text("""<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Nope(x) }""")
    assert problem_of(invalid).problem.id == "model/invalid"


def test_multiply_adds_of_convolutions_and_matrix_products() -> None:
    found = summary(from_text(MULTIPLYING)).macs
    convolution = 6 * 30 * 30 * 4 * 3 * 3
    transposed = 8 * 32 * 32 * 4 * 2 * 2
    assert found.terms == (MacTerm(2 * 4 * 5 * 16, ()), MacTerm(convolution + transposed, ("N",)))
    assert (found.counted, found.unknown_shape, found.nested) == (4, 0, 2)


def test_multiply_adds_that_are_not_known_are_said_to_be_left_out() -> None:
    found = summary(
        from_text("""<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>
            g (float x, float[1, 4, 3] s, float[1, 20, 3] w, float[1, 20, 5] r) => (float y, float[M, 1, 4, 5] l) {
                y = MatMul(x, x)
                l, u = com.acme.Sharpen (s, w, r)
            }""").clone()
    )
    assert (found.macs.counted, found.macs.unknown_shape, found.macs.other) == (0, 1, {"com.acme::Sharpen": 1})
    (facts,) = [block for block in found.blocks() if isinstance(block, Facts)]
    assert dict(facts.rows)["multiply-adds not counted"] == "1 node of unknown shape, 1 com.acme::Sharpen"


def test_missing_weights_are_a_problem_and_never_looked_for_elsewhere() -> None:
    model = from_text("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }""")
    model.graph.initializers["w"].const_value = ir.ExternalTensor(
        "/etc/hostname", 0, 8, ir.DataType.FLOAT, shape=ir.Shape([2]), name="w"
    )
    report = same(inspect(model, tensors=True))
    assert [problem.id for problem in report.problems] == ["inspect/weights-missing"]
    found = report.part(ModelSummary)
    assert found.missing == ("w",)
    assert [(file.location, file.file_bytes) for file in found.data_files] == [("/etc/hostname", None)]
    model.graph.initializers["w"].const_value = None
    assert same(inspect(model, tensors=True)).part(ModelSummary).missing == ("w",)


def test_external_data_is_counted_and_named(tmp_path: Path) -> None:
    model = from_text("""<ir_version: 8, opset_import: ["": 17]>
        g (float[600] x) => (float[600] y) <float[1] w = {0}> { y = Add(x, w) }""")
    weights = np.arange(600, dtype=np.float32)
    model.graph.initializers["w"].const_value = ir.Tensor(weights, name="w")
    model.graph.initializers["w"].shape = ir.Shape([600])
    save(model, tmp_path / "m.onnx", external_data=True)
    report = same(inspect(tmp_path / "m.onnx"))
    found = report.part(ModelSummary)
    (data,) = found.data_files
    assert (data.tensors, data.bytes, data.file_bytes) == (1, 2400, 2400)
    assert found.bytes == (tmp_path / "m.onnx").stat().st_size
    view = same(inspect(str(tmp_path / "m.onnx"), name="w")).part(TensorView)
    assert view.where == f"external {data.location}"
    assert view.statistics is not None
    assert (view.statistics.min, view.statistics.max, view.statistics.mean) == (0.0, 599.0, 299.5)


def test_the_node_table_has_paths_shapes_and_the_users_line() -> None:
    model = from_text(BRANCHES)
    model.graph[0].metadata_props["pkg.torch.onnx.name_scopes"] = "['', 'blocks', 'blocks.0', 'add']"
    model.graph[0].metadata_props["pkg.torch.onnx.stack_trace"] = 'File "net.py", line 7, in forward\n  return x + 1'
    report = same(inspect(model, nodes=True))
    rows = {row.name or row.op: row for row in report.part(NodeTable).rows}
    assert [row.index for row in report.part(NodeTable).rows] == list(range(8))
    assert (rows["add"].module, rows["add"].source, rows["add"].scope) == ("blocks.0", "net.py:7", "")
    assert rows["add"].inputs == (Operand("x", "float[N,3]"), Operand("w", "float[1]"))
    assert rows["add"].outputs == (Operand("a", "float[N,3]"),)
    assert (rows["call"].scope, rows["call"].depth, rows["call"].op) == ("choose/then_branch", 1, "local::twice")
    assert (rows["Relu"].scope, rows["Relu"].depth) == ("choose/else_branch/inner/then_branch", 2)
    assert (rows["times"].scope, rows["times"].depth) == ("local::twice", 0)
    assert report.part(ModelSummary).modules == (Module("blocks", 1), Module("", 6))
    (table,) = [block for block in report.part(NodeTable).blocks() if isinstance(block, Table)]
    assert "net.py:7" in table.rows[0]


def test_a_node_by_name_shows_schema_operands_attributes_and_origin() -> None:
    model = from_text(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[1, 3, 8, 8] x) => (float[1, 4, 8, 8] y) <float[4, 3, 1, 1] w> {
            [conv] a = Conv <kernel_shape = [1, 1]> (x, w)
            [clip] y = Clip(a, , w0)
        }""".replace(" <float[4, 3, 1, 1] w>", " <float[4, 3, 1, 1] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float w0 = {6}>")
    )
    model.graph[0].metadata_props.update(
        {
            "pkg.torch.onnx.name_scopes": "['', 'head', 'conv2d']",
            "pkg.torch.onnx.class_hierarchy": "['M', 'Conv2d', 'aten.conv2d.default']",
            "author": "me",
        }
    )
    view = same(inspect(model, name="conv")).part(NodeView)
    assert (view.op, view.opset, view.since, view.newest, view.deprecated) == ("Conv", 17, 11, 22, False)
    assert [(slot.formal, slot.name, slot.type, slot.others) for slot in view.inputs] == [
        ("X", "x", "float[1,3,8,8]", ("input",)),
        ("W", "w", "float[4,3,1,1]", ("initializer",)),
    ]
    assert [(slot.formal, slot.name, slot.others) for slot in view.outputs] == [("Y", "a", ("Clip clip, input 0",))]
    assert {(a.name, a.value, a.given) for a in view.attributes} == {
        ("kernel_shape", "[1, 1]", True),
        ("group", "1", False),
        ("auto_pad", "'NOTSET'", False),
    }
    assert (view.module, view.torch_op, view.metadata) == ("head", "aten.conv2d.default", {"author": "me"})
    clip = same(inspect(model, name="clip")).part(NodeView)
    assert [(slot.formal, slot.name) for slot in clip.inputs] == [("input", "a"), ("min", ""), ("max", "w0")]


def test_every_kind_of_attribute_has_its_value() -> None:
    inner = helper.make_graph(
        [helper.make_node("Relu", ["a"], ["b"])],
        "body",
        [helper.make_tensor_value_info("a", 1, [2])],
        [helper.make_tensor_value_info("b", 1, [2])],
    )
    floats = helper.make_tensor("t", TensorProto.BFLOAT16, [3], [0.1, -2.0, float("inf")])
    texts = helper.make_tensor("s", TensorProto.STRING, [2], [b"h\xc3\xa9", b"\xff"])
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(10, ["N", 2]))
    given = {
        "f": 0.1,
        "fs": [1.5, 1e-5],
        "i": 7,
        "is": list(range(70)),
        "s": "it's",
        "ss": ["a", "b"],
        "t": floats,
        "ts": [floats, texts],
        "g": inner,
        "gs": [inner],
        "tp": kind,
        "tps": [kind],
    }
    node = helper.make_node("Everything", ["x"], ["y"], name="all", domain="acme", **given)
    value = helper.make_tensor_value_info("x", 1, [2])
    graph = helper.make_graph([node], "g", [value], [helper.make_tensor_value_info("y", 1, [2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("acme", 1)])
    model.ir_version = 10
    view = same(inspect(model, name="all")).part(NodeView)
    shown = {attribute.name: attribute.value for attribute in view.attributes}
    assert (view.since, view.newest) == (None, None)
    assert shown["f"] == "0.1"
    assert shown["fs"] == "[1.5, 1e-05]"
    assert shown["i"] == "7"
    assert shown["is"] == f"[{', '.join(map(str, range(64)))}, … 6 more]"
    assert shown["s"] == '"it\'s"'
    assert shown["ss"] == "['a', 'b']"
    assert shown["t"] == "bfloat16[3] {0.10009765625, -2.0, inf}"
    assert shown["ts"] == "[bfloat16[3] {0.10009765625, -2.0, inf}, string[2] {'hé', b'\\xff'}]"
    assert shown["g"] == "graph 'body': (a) => (b), 1 node (1 Relu)"
    assert shown["gs"] == "[graph 'body': (a) => (b), 1 node (1 Relu)]"
    assert shown["tp"] == "optional(float16[N,2])"
    assert shown["tps"] == "[optional(float16[N,2])]"


def test_an_attribute_of_a_function_is_a_reference() -> None:
    model = from_text("""<ir_version: 10, opset_import: ["": 20, "local": 1]>
        g (float[2] x) => (float[2] y) { y = local.leak <slope = 0.5> (x) }
        <domain: "local", opset_import: ["": 20]>
        leak <slope> (p) => (q) { [inside] q = LeakyRelu <alpha: float = @slope> (p) }""")
    view = same(inspect(model, name="inside")).part(NodeView)
    assert view.scope == "local::leak"
    assert [a.value for a in view.attributes if a.given] == ["@slope, an attribute of the function"]
    assert same(inspect(model, name="p")).part(TensorView).roles == ("function input",)


def test_everything_of_one_name_is_shown() -> None:
    model = from_text(BRANCHES.replace("[add] a = Add", "[a] a = Add"))
    report = same(inspect(model, name="a"))
    node, tensor = report.part(NodeView), report.part(TensorView)
    assert len(report.parts) == 2
    assert node.outputs[0].name == tensor.name == "a"
    assert (tensor.roles, tensor.producer, tensor.type) == (("made by a node",), "Add a", "float[N,3]")
    assert len(tensor.consumers) == 3
    twice = from_text(
        BRANCHES.replace("[inner] e = If(c)", "[inner] e = If(c)")
        .replace("Neg(a)", "Neg(d)")
        .replace("{ f = Neg", "{ d = Abs(a) f = Neg")
    )
    assert [part.scope for part in inspect(twice, name="d").parts if isinstance(part, TensorView)] == [
        "choose/else_branch/inner/then_branch",
        "choose/else_branch/inner/else_branch",
    ]


def test_inputs_and_outputs_by_name() -> None:
    model = from_text(BRANCHES)
    x, y, t = (same(inspect(model, name=name)).part(TensorView) for name in "xyt")
    assert (x.roles, x.producer, x.consumers) == (("graph input",), "", ("Add add, input 0",))
    assert (y.roles, y.producer, y.consumers) == (
        ("made by a node", "graph output"),
        "If choose",
        ("an output of its graph",),
    )
    assert t.roles == ("made by a node", "subgraph output")


def test_an_unknown_name_suggests_close_ones() -> None:
    model = from_text(BRANCHES)
    error = problem_of(model, "chose")
    assert error.problem.id == "inspect/unknown-name"
    assert error.problem.fix == "similar names: choose"
    assert "inner" in problem_of(model, "INN").problem.fix
    assert "--nodes" in problem_of(model, "zzzzzz").problem.fix


def test_the_text_reads_back() -> None:
    text = same(inspect(from_text(BRANCHES), text=True)).part(ModelText).text
    assert "local.twice" in text
    assert "then_branch" in text


def test_the_command_asks_for_what_its_options_say(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    save(from_text(BRANCHES), path)
    kinds = [type(part) for part in Inspect(str(path), nodes=True, text=True).run().parts]
    assert kinds == [ModelSummary, NodeTable, ModelText]
    assert [type(part) for part in Inspect(str(path), "choose").run().parts] == [NodeView]


def test_inspecting_changes_nothing() -> None:
    model = from_text(BRANCHES)
    for node in walk.all_nodes(model):
        if node.op_type == "Constant":
            node.attributes["value"].as_tensor().name = "k"  # shape inference names it so, in the shared tensor
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    inspect(model, nodes=True, tensors=True, text=True)
    inspect(model, name="a")
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before


def test_a_model_that_cannot_be_written_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: ir.Model) -> None:
        raise ValueError("this node cannot be written")

    for module in ("viewer.inspection.inspect", "graph.files.specification_check"):
        monkeypatch.setattr(f"onnxsmith.{module}.light_message", refuse)
    with pytest.raises(OnnxsmithError, match="this node cannot be written") as error:
        inspect(from_text('<ir_version: 10, opset_import: ["": 20]> g (float[] x) => (float[] y) { y = Elu(x, x) }'))
    assert error.value.problem.id == "model/invalid"
