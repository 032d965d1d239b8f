"""`replace`: files of replacements, conditions, counts, local functions; all or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.single_steps import Replace
from onnxsmith.graph.files.text import from_text

TEXT = """<ir_version: 10, opset_import: ["": 21]>
net (float[batch,4] x, float16[2] h) => (float[batch,4] y, float16[2] z) <float[4] bias = {1,2,3,4}> {
   [first] a = Neg(x) [second] b = Neg(a) [add] c = Add(b, bias) [third] d = Neg(c) [fourth] y = Neg(d)
   [low] e = Neg(h) [lower] z = Neg(e)
}"""


def net(folder: Path) -> Path:
    path = folder / "net.onnx"
    onnxsmith.save(from_text(TEXT), path)
    return path


def replaced(folder: Path, tables: str) -> list[str] | Problem:
    """The operators after `onnxsmith replace net.onnx r.toml`, or the problem; a file is there after success only."""
    (folder / "r.toml").write_text(tables, encoding="utf-8")
    output = folder / "out.onnx"
    try:
        with onnxsmith.edit(net(folder), output) as m:
            m.apply(folder / "r.toml")
    except onnxsmith.OnnxsmithError as error:
        assert not output.exists()
        return error.problem
    return [node.op_type for node in onnxsmith.load(output).graph]


DOUBLE = '[[replace]]\nfind = "m = Neg(x) y = Neg(m)"\nby = "x"\n'


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        ("", "Add Identity Identity"),
        ("count = 3", "Add Identity Identity"),
        ('where = { x = { dtype = "float16" } }\ncount = 1', "Neg Neg Add Neg Neg Identity"),
        ('where = { x = { dtype = ["float32", "float64"] } }', "Add Identity Neg Neg"),
        ('where = { x = { shape = ["batch", "?"], rank = 2 } }', "Add Identity Neg Neg"),
        ("where = { x = { rank = 1 } }", "Neg Neg Add Neg Neg Identity"),
        ('where = { x = "c" }', "Neg Neg Add Neg Neg Identity"),
        ('where = { m = { name = "th*" } }', "Neg Neg Add Neg Neg Identity"),
        ('where = { x = { op = "Add" }, y = { gives = "y" } }', "Neg Neg Add Neg Neg Identity"),
    ],
)
def test_conditions(tmp_path: Path, conditions: str, left: str) -> None:
    assert sorted(replaced(tmp_path, DOUBLE + conditions)) == sorted(left.split())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("conditions", "id_", "told"),
    [
        ("count = 2", "edit/match-count", "matches 3 places, not 2"),
        ("count = 4", "edit/match-count", "matches 3 places, not 4"),
        ("count = 0", "edit/step-argument", "count is 0"),
        ('count = "some"', "edit/step-argument", "count is 'some'"),
        ('where = { x = { dtype = "int64" } }', "edit/no-match", "x: dtype is float32, not int64"),
        ('where = { x = { dtype = "intt" } }', "build/dtype", "intt"),
        ("where = { q = { rank = 2 } }", "edit/where", "the pattern has no name 'q'"),
        ("where = { x = { size = 2 } }", "edit/where", "size is no condition"),
        ('where = { x = { rank = "2" } }', "edit/where", "rank is '2'"),
        ("where = { x = { shape = 2 } }", "edit/where", "shape is 2"),
        ("where = { x = { name = 2 } }", "edit/where", "name is 2"),
        ("where = { x = { attributes = 2 } }", "edit/where", "attributes is 2"),
        ("where = { x = 2 }", "edit/where", "not a table"),
        ("where = [2]", "edit/step-argument", "where of replace is a table, not '[2]'"),
        ('where = { x = { op = "Relu" } }', "edit/no-match", "none (x is not the output of a node)"),
        ("cuont = 2", "edit/step-argument", "write count in place of cuont"),
    ],
)
def test_refused(tmp_path: Path, conditions: str, id_: str, told: str) -> None:
    found = replaced(tmp_path, DOUBLE + conditions)
    assert isinstance(found, Problem)
    assert (found.id, told in f"{found.what}; {found.why}; {found.fix}") == (id_, True), found


def test_all_or_nothing(tmp_path: Path) -> None:
    found = replaced(tmp_path, f'{DOUBLE}\n[[replace]]\nfind = "Mul(Neg(x), _)"\nby = "x"\n')
    assert isinstance(found, Problem)
    assert found.id == "edit/no-match"
    assert (found.where or "").endswith("Mul(Neg(x), _)")


def test_several_replacements_see_each_other(tmp_path: Path) -> None:
    found = replaced(tmp_path, f'{DOUBLE}\n[[replace]]\nfind = "Add(x, c_b)"\nby = "Sub(x, Neg(c_b))"\ncount = 1\n')
    assert found == ["Neg", "Sub", "Identity", "Identity"]


def test_a_condition_chooses_between_the_orders_of_operands(tmp_path: Path) -> None:
    text = TEXT.replace("c = Add(b, bias)", "f = Abs(x) c = Add(b, f)")
    path = tmp_path / "net.onnx"
    onnxsmith.save(from_text(text), path)
    for op in ("Neg", "Abs"):
        with onnxsmith.edit(path, tmp_path / f"{op}.onnx") as m:
            m.replace("Add(x, z)", "Sum(x, z)", where={"x": {"op": op}})
        (node,) = (node for node in onnxsmith.load(tmp_path / f"{op}.onnx").graph if node.op_type == "Sum")
        assert node.inputs[0] is not None
        assert node.inputs[0].producer().op_type == op  # type: ignore[union-attr]


def test_the_command(tmp_path: Path) -> None:
    tables, output, record = tmp_path / "r.toml", tmp_path / "out.onnx", tmp_path / "record.toml"
    tables.write_text(DOUBLE + "count = 3\n", encoding="utf-8")
    model = str(net(tmp_path))
    report = Replace(model=model, find=str(tables), output=str(output), write_patch=str(record)).run()
    assert report.verdict is Verdict.DONE
    assert len(onnxsmith.load(output).graph) == 3
    with onnxsmith.edit(model, output) as m:
        m.apply(record)
    assert len(onnxsmith.load(output).graph) == 3
    Replace(model=model, find="Neg(Neg(x))", by="x", count=3, output=str(output)).run()
    for wrong, id_ in (
        ({"find": "Neg(Neg(x))"}, "edit/no-replacement"),
        ({"find": str(tables), "count": 2}, "edit/no-replacement"),
        ({"find": "Neg(Neg(x))", "by": "x", "count": 2}, "edit/match-count"),
        ({"find": str(tmp_path / "none.toml")}, "edit/patch-file"),
    ):
        with pytest.raises(onnxsmith.OnnxsmithError) as caught:
            Replace(model=model, output=str(tmp_path / "no.onnx"), **wrong).run()  # type: ignore[arg-type]
        assert caught.value.problem.id == id_
        assert not (tmp_path / "no.onnx").exists()


def test_a_file_of_both_kinds_of_tables(tmp_path: Path) -> None:
    found = replaced(tmp_path, f'{DOUBLE}[[step]]\ndo = "rename"\ntensor = "x"\nto = "image"\n')
    assert isinstance(found, Problem)
    assert found.id == "edit/patch-file"


FUNCTIONS = """<ir_version: 10, opset_import: ["": 20, "local": 1]>
net (float[n,4] x) => (float[n,4] y) {
   a = local.soft <at = 0> (x)
   b = local.twice(a)
   y = local.soft <at = 1> (b)
}
<domain: "local", opset_import: ["": 20]>
soft <at> (u) => (w) { v = Neg(u) w = Softmax <axis: int = @at> (v) }
<domain: "local", opset_import: ["": 20, "local": 1]>
twice (u) => (w) { w = local.inner(u, u) }
<domain: "local", opset_import: ["": 20]>
inner (u, v) => (w) { w = Add(u, v) }
"""


def test_an_attribute_that_callers_give_stays_theirs(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnxsmith.save(from_text(FUNCTIONS), path)
    with onnxsmith.edit(path) as m:
        m.replace("Softmax <axis = ?a> (x)", "Exp(LogSoftmax <axis = ?a> (x))", count=1)
    soft = onnxsmith.load(path).functions["local", "soft", ""]
    (node,) = (node for node in soft if node.op_type == "LogSoftmax")
    assert node.attributes["axis"].ref_attr_name == "at"


def test_functions_that_nothing_calls_any_more_go(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnxsmith.save(from_text(FUNCTIONS), path)
    with onnxsmith.edit(path) as m:
        m.replace("local.twice(x)", "Mul(x, 2.0)")
    assert {name for _, name, _ in onnxsmith.load(path).functions} == {"soft"}


def test_constants_that_only_the_match_read_go(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 21]> net (float[n,4] x) => (float[n,4] y) {
      half = Constant<value_float = 0.5>() two = Constant<value_float = 2.0>()
      a = Mul(x, half) b = Mul(a, two) y = Add(b, two) }"""
    onnxsmith.save(from_text(text), tmp_path / "net.onnx")
    with onnxsmith.edit(tmp_path / "net.onnx") as m:
        m.replace("Mul(Mul(x, 0.5), 2.0)", "x")
    assert [node.op_type for node in onnxsmith.load(tmp_path / "net.onnx").graph] == ["Constant", "Add"]


def test_a_variable_of_a_choice_that_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(net(tmp_path)) as m:
        m.replace("Neg(either(Mul(x, c_b), x))", "Max(x, c_b)")
    assert caught.value.problem.id == "edit/replacement"
    assert "alternative" in (caught.value.problem.why or "")


def test_many_matches_of_several_results(tmp_path: Path) -> None:
    lines = [f"a{n} = Exp(v{n}) b{n} = Neg(v{n}) v{n + 1} = Add(a{n}, b{n})" for n in range(60)]
    text = f'<ir_version: 10, opset_import: ["": 21]> g (float[n] v0) => (float[n] v60) {{ {" ".join(lines)} }}'
    path = tmp_path / "net.onnx"
    onnxsmith.save(from_text(text.replace("Exp", "Tanh")), path)
    with onnxsmith.edit(path) as m:
        m.replace("(x) => (p, q) { p = Tanh(x) q = Neg(x) }", "(x) => (p, q) { q = Neg(x) p = Neg(Tanh(q)) }", count=60)
    ops = [node.op_type for node in onnxsmith.load(path).graph]
    assert [ops.count(op) for op in ("Tanh", "Neg", "Add")] == [60, 120, 60]


def test_an_operator_without_a_schema_takes_type_and_shape_of_what_it_replaces(tmp_path: Path) -> None:
    """The specification wants both of a graph output, and no inference knows the operator."""
    output = tmp_path / "out.onnx"
    with onnxsmith.edit(net(tmp_path), output, verify=False) as m:
        m.replace("Neg(Neg(d))", "my.layers.Twice(d)", count="all", where={"d": {"dtype": "float32"}})
    graph = onnxsmith.load(output).graph
    assert [node.op_type for node in graph] == ["Twice", "Add", "Twice", "Neg", "Neg"]
    assert [(value.dtype.name, list(value.shape)) for value in graph.outputs[:1]] == [("FLOAT", ["batch", 4])]  # type: ignore[union-attr,arg-type]


def test_a_result_inside_the_graph_keeps_its_name_and_that_of_its_node(tmp_path: Path) -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 21]> g (float[n,4] x) => (float[n,4] y) <float[4] w = {1,2,3,4}, '
        "float[4] b = {1,0,1,0}> { [first] m = Mul(x, w) [sum] h = Add(m, b) [end] y = Relu(h) }"
    )
    onnxsmith.save(from_text(text), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.replace("Add(Mul(x, w), b)", "Add(b, Mul(x, w))")
        m.expose("h")
    made = m.result.model
    assert made is not None
    assert [(node.name, node.outputs[0].name) for node in made.graph if node.op_type == "Add"] == [("sum", "h")]
    assert m.result.ok
