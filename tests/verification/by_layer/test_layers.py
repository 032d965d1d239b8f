"""`compare` by layer: a fault is named where it is, and nothing is named where there is none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.parts.verification import Outputs, Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.comparison.outputs.single_input_layers import LayerOptions
from onnxsmith.exporter.tracing.torch_logging import quiet
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.exports import compared_once


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.query = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.feed = nn.Linear(16, 32)
        self.back = nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.query(self.norm(x)).chunk(3, -1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 4.0, -1)
        x = x + self.out(weights @ v)
        return x + self.back(nn.functional.gelu(self.feed(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 4, 4)
        self.bn = nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(Block(), Block(), Block())
        self.head = nn.Linear(16, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.bn(self.first(image)).flatten(2).transpose(1, 2)
        logits: torch.Tensor = self.head(self.blocks(x).mean(1))
        return logits


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    net = Net().eval()
    net.bn.running_mean.normal_()  # type: ignore[union-attr, operator]
    return net, (torch.randn(2, 3, 16, 16),)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file as torch exports it."""
    path = tmp_path_factory.mktemp("plain") / "net.onnx"
    module, args = build()
    axes = ({0: torch.export.Dim.DYNAMIC},)
    with quiet():
        program = torch.onnx.export(module, args, dynamic_shapes=axes, verbose=False)
    assert program is not None
    program.save(path)
    return path


@pytest.fixture(scope="module")
def simple(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file as onnxsmith exports it, simplified: nodes are fused, and some tensors computed otherwise."""
    path = tmp_path_factory.mktemp("simple") / "net.onnx"
    with compared_once():
        assert onnxsmith.export(*build(), output=path, dynamic="image:0=batch").ok
    return path


def layers_of(result: Any) -> Layers:
    return result.report.part(Layers)  # type: ignore[no-any-return]


def node(model: ir.Model, op: str, place: int = 0) -> ir.Node:
    return [one for one in model.graph if one.op_type == op][place]


def epsilon(model: ir.Model) -> ir.Node:
    found = node(model, "LayerNormalization", 1)
    found.attributes["epsilon"] = ir.AttrFloat32("epsilon", 0.1)
    return found


def approximated(model: ir.Model) -> ir.Node:
    found = node(model, "Gelu", 1)
    found.attributes["approximate"] = ir.AttrString("approximate", "tanh")
    return found


def axis(model: ir.Model) -> ir.Node:
    found = node(model, "Softmax", 2)
    found.attributes["axis"] = ir.AttrInt64("axis", -2)
    return found


def weight(model: ir.Model) -> ir.Node:
    found = node(model, "Conv")
    held = found.inputs[1]
    assert held is not None
    assert held.const_value is not None
    changed = held.const_value.numpy().copy()
    changed[3, 1, 2, 2] += 0.5
    held.const_value = ir.tensor(changed, name=held.name)
    return found


FAULTS: tuple[Callable[[ir.Model], ir.Node], ...] = (epsilon, approximated, axis, weight)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("file", ["plain", "simple"])
def test_a_fault_is_named_with_its_module(fault: Any, file: str, request: pytest.FixtureRequest) -> None:
    model = ir.load(request.getfixturevalue(file))
    culprit = fault(model)
    result = onnxsmith.compare(build(), model, per_layer=True)
    found = layers_of(result)
    assert result.report.verdict is Verdict.DIFFERENT
    assert found.layer(found.culprits[0]).steps[0] == culprit.name
    assert found.culprits == (found.culprits[0],), "what comes after it is inherited"
    assert [problem.id for problem in result.report.problems][-1] == "compare/first-error"
    module = found.layer(found.culprits[0]).module
    assert module.startswith("blocks.") or module in ("first", "bn")
    assert "test_layers.py:" in found.layer(found.culprits[0]).source


@pytest.mark.parametrize("file", ["plain", "simple"])
def test_without_a_fault_none_is_named(file: str, request: pytest.FixtureRequest) -> None:
    result = onnxsmith.compare(build(), request.getfixturevalue(file), per_layer=True)
    found = layers_of(result)
    assert result.ok
    assert found.culprits == ()
    assert found.share > 0.75
    assert {layer.verdict for layer in found.layers} == {"equal"}


def test_a_fault_of_a_hundred_thousandth_is_named(plain: Path) -> None:
    model = ir.load(plain)
    culprit = node(model, "LayerNormalization", 1)
    culprit.attributes["epsilon"] = ir.AttrFloat32("epsilon", 1e-4)
    found = layers_of(onnxsmith.compare(build(), model, per_layer=True))
    assert found.layer(found.culprits[0]).steps[0] == culprit.name
    assert found.layer(found.culprits[0]).own < 5e-5  # type: ignore[operator]


def test_a_program_that_needs_no_decomposing_is_looked_at_as_it_is(tmp_path: Path) -> None:
    """Its views have other numbers than in the file, which flattens by one more."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.out = nn.Linear(16, 48), nn.Linear(16, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = self.query(x.flatten(2).transpose(1, 2)).view(2, 16, 3, 16).unbind(2)
            y = torch.softmax(q @ k.transpose(1, 2), -1) @ v
            y = y.reshape(2, 16, 4, 4).transpose(1, 2).reshape(2, 4, 64).view(2, 16, 16)
            done: torch.Tensor = self.out(y).flatten(1)
            return done

    torch.manual_seed(0)
    module, args = Attention().eval(), (torch.randn(2, 16, 4, 4),)
    with quiet():
        program = torch.onnx.export(module, args, verbose=False)
        exported = torch.export.export(module, args)
    assert program is not None
    program.save(tmp_path / "a.onnx")
    result = onnxsmith.compare(exported, tmp_path / "a.onnx", per_layer=True)
    found = layers_of(result)
    assert result.ok
    assert {layer.verdict for layer in found.layers} == {"equal"}
    assert found.share > 0.9
    model = ir.load(tmp_path / "a.onnx")
    culprit = node(model, "Softmax")
    culprit.attributes["axis"] = ir.AttrInt64("axis", -2)
    found = layers_of(onnxsmith.compare(exported, model, per_layer=True))
    assert found.layer(found.culprits[0]).steps[0] == culprit.name


def test_two_files_whose_names_have_nothing_in_common(plain: Path) -> None:
    model = ir.load(plain)
    culprit = epsilon(model)
    for number, one in enumerate(model.graph):
        one.metadata_props.clear()
        for place, value in enumerate(one.outputs):
            value.name = f"t{number}_{place}"
        one.name = f"n{number}"
    found = layers_of(onnxsmith.compare(plain, model, per_layer=True))
    assert found.layer(found.culprits[0]).steps[0] == culprit.name
    assert found.share > 0.9
    assert "match" in found.paired


def test_the_candidate_may_be_the_torch_side(plain: Path) -> None:
    module, args = build()
    with torch.no_grad():
        module.blocks[1].back.weight[2, 3] += 0.5  # type: ignore[index, union-attr]
    found = layers_of(onnxsmith.compare(plain, (module, args), per_layer=True))
    assert found.layer(found.culprits[0]).module == "blocks.1.back"


@pytest.mark.parametrize("saved", [False, True])
def test_a_program_of_torch_export_is_a_side(saved: bool, plain: Path, tmp_path: Path) -> None:
    module, args = build()
    with quiet():
        program = torch.export.export(module, args, dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
        torch.export.save(program, tmp_path / "net.pt2")
    model = ir.load(plain)
    culprit = approximated(model)
    reference = tmp_path / "net.pt2" if saved else program
    found = layers_of(onnxsmith.compare(reference, model, per_layer=True))
    assert found.layer(found.culprits[0]).steps[0] == culprit.name


def test_a_saved_bundle_is_a_side(plain: Path, tmp_path: Path) -> None:
    onnxsmith.dump(plain, tmp_path / "values.safetensors")
    model = ir.load(plain)
    culprit = approximated(model)
    assert onnxsmith.compare(tmp_path / "values.safetensors", plain, per_layer=True).ok
    found = layers_of(onnxsmith.compare(tmp_path / "values.safetensors", model, per_layer=True))
    assert found.layer(found.culprits[0]).steps[0] == culprit.name
    with pytest.raises(OnnxsmithError) as raised:
        onnxsmith.compare(tmp_path / "values.safetensors", plain, inputs={"image": np.zeros((2, 3, 16, 16), "f")})
    assert raised.value.problem.id == "compare/other-input"


def test_what_the_other_side_gave_is_kept_where_one_crashes() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (int64[2] x, int64 d) => (int64[2] y) { y = %s (x, d) }"""
    inputs = {
        "x": np.array([-(2**63), 11], np.int64),
        "d": np.array(-1, np.int64),
    }  # the quotient has no place in int64
    result = onnxsmith.compare(
        from_text(text % "Max"), from_text(text % "Div"), inputs=inputs, generate=False, runtime="onnxruntime"
    )
    assert result.report.verdict is Verdict.FAILED
    assert result.report.problems[0].id == "runtime/died"
    assert result.report.part(Outputs).outputs[0].high == 11


BRANCHES = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x, bool c) => (float[4] y)
    <float w = {%s}> {
        a = Exp (x)
        y = If (c) <then_branch = t () => (float[4] u) {
            s = ReduceSum <keepdims = 0> (a)  z = Constant <value_float: float = 0.0> ()  d = Greater (s, z)
            u = If (d) <then_branch = tt () => (float[4] v) { k = Mul (a, w)  v = Tanh (k) },
                        else_branch = te () => (float[4] q) { q = Neg (a) }>
        }, else_branch = e () => (float[4] o) { o = Sqrt (a) }>
    }"""


@pytest.mark.parametrize("condition", [True, False])
def test_branches_that_the_input_takes_are_looked_into(condition: bool) -> None:
    inputs = {"x": np.linspace(-1, 1, 4, dtype="f"), "c": np.array(condition)}
    one, two = (from_text(BRANCHES % number) for number in ("0.5", "0.6"))
    result = onnxsmith.compare(one, two, inputs=inputs, generate=False, per_layer=True)
    found = layers_of(result)
    assert found.culprits == (("k",) if condition else ())
    assert result.report.verdict is (Verdict.DIFFERENT if condition else Verdict.CANNOT_TELL)
    assert f"{2 if condition else 1} branches" in found.notes[0]


LOOP = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x, int64 n) => (float[4] y, float[K,4] s) {
    c = Constant <value = bool {1}> ()  h = Exp (x)
    z, s = Loop (n, c, h) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] vo, float[4] so) {
        co = Identity (ci)  two = Constant <value = int64 {2}> ()  late = Greater (i, two)
        vo = If (late) <then_branch = t () => (float[4] q) { k = %s (v)  q = Mul (k, k) },
                        else_branch = e () => (float[4] r) { r = Tanh (v) }>
        so = Exp (vo) }>
    y = Neg (z) }"""


def test_a_fault_in_the_body_of_a_loop_is_named_with_its_iteration() -> None:
    inputs = {"x": np.linspace(-1, 1, 4, dtype="f"), "n": np.array(6)}
    one, two = from_text(LOOP % "Tanh"), from_text(LOOP % "Softsign")
    result = onnxsmith.compare(one, two, inputs=inputs, generate=False, per_layer=True)
    found = layers_of(result)
    assert found.layer(found.culprits[0]).op == "Loop"
    assert found.inside is not None
    assert (found.inside.name, found.inside.op, found.inside.iteration, found.inside.of) == ("k", "Softsign", 1, 3)
    assert Report.from_json(result.report.to_json()) == result.report
    early = dict(inputs, n=np.array(3))
    unreached = onnxsmith.compare(one, two, inputs=early, generate=False, per_layer=True)
    assert unreached.report.verdict is Verdict.CANNOT_TELL, "never computed, so nothing is known"
    assert not layers_of(unreached).culprits
    more = layers_of(
        onnxsmith.compare(
            one, from_text((LOOP % "Tanh").replace("{2}", "{1}")), inputs=inputs, per_layer=True, generate=False
        )
    )
    assert more.inside is not None
    assert more.inside.name == "two"


BODY = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x, int64 n) => (float[4] y) {
    c = Constant <value = bool {1}> ()
    z = Loop (n, c, x) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] vo) {
        co = Identity (ci)  a = Exp (v)  d = Neg (a)  %s  vo = Sigmoid (e) }>
    y = Neg (z) }"""


@pytest.mark.parametrize("step", ["e = Sin (d)", "k = Tanh (d)  e = Abs (k)", "e = Tanh (a)"])
def test_bodies_with_other_names_and_steps_are_aligned(step: str) -> None:
    """The names of the candidate are others, and one step is exchanged, added or removed."""
    one = from_text(BODY % "e = Tanh (d)")
    two = from_text(re.sub(r"\b(a|d|e|vo)\b", r"new_\1", BODY % step))
    result = onnxsmith.compare(one, two, inputs={"x": np.linspace(-1, 1, 4, dtype="f"), "n": np.array(2)},
                               generate=False, per_layer=True)  # fmt: skip
    found = layers_of(result).inside
    assert found is not None
    assert found.name == "new_e", "the step itself, also one that the candidate alone has"
    problem = result.report.problems[-1]
    assert f"in its body {found.op}" in problem.where
    assert f"in its body {found.op}" in result.report.headline


def test_steps_of_a_body_in_another_order_are_paired_by_their_values() -> None:
    one = from_text(BODY % "p = Sin (d)  q = Sin (a)  e = Sub (p, q)")
    two = from_text(re.sub(r"\b(a|d|e|vo)\b", r"new_\1", BODY % "q2 = Sin (a)  p2 = Sin (d)  e = Sub (q2, p2)"))
    result = onnxsmith.compare(one, two, inputs={"x": np.linspace(-1, 1, 4, dtype="f"), "n": np.array(2)},
                               generate=False, per_layer=True)  # fmt: skip
    found = layers_of(result).inside
    assert found is not None
    assert (found.name, found.op, found.iteration) == ("new_e", "Sub", 1), "the two Sin changed their places only"


def test_a_step_that_takes_the_place_of_two_is_paired_by_its_name() -> None:
    one, two = from_text(BODY % "t = Tanh (d)  e = Sin (t)"), from_text(BODY % "e = Cos (d)")
    result = onnxsmith.compare(one, two, inputs={"x": np.linspace(-1, 1, 4, dtype="f"), "n": np.array(2)},
                               generate=False, per_layer=True)  # fmt: skip
    found = layers_of(result).inside
    assert found is not None
    assert (found.name, found.op) == ("e", "Cos"), "not the Sigmoid, which reads it"


TURNS = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) {
    c = Constant <value = bool {1}> ()  n = Constant <value = int64 {4}> ()
    y = Loop (n, c, x) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] vo) {
        co = Identity (ci)  two = Constant <value = int64 {2}> ()  odd = Mod (i, two)  late = Cast <to = 9> (odd)
        z = If (late) <then_branch = t () => (float[4] q) { q = %s (v) },
                       else_branch = e () => (float[4] r) { r = %s (v) }>
        vo = Neg (z) }> }"""


@pytest.mark.parametrize(("faulty", "named"), [(("Sin", "Cos"), "r"), (("Cos", "Tanh"), "q")])
def test_of_two_branches_the_one_that_was_taken_is_searched(faulty: tuple[str, str], named: str) -> None:
    """The other branch is taken one turn later, and reads what follows from the fault."""
    one, two = from_text(TURNS % ("Sin", "Tanh")), from_text(TURNS % faulty)
    found = layers_of(
        onnxsmith.compare(one, two, inputs={"x": np.linspace(-1, 1, 4, dtype="f")}, generate=False, per_layer=True)
    ).inside
    assert found is not None
    assert (found.name, found.iteration) == (named, 1)


def test_casts_at_the_end_of_a_body_in_a_branch_are_a_difference() -> None:
    """What a body returns is no output of the graph, and is not put back as one."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x, bool on) => (float[4] y) {
        c = Constant <value = bool {1}> ()  n = Constant <value = int64 {3}> ()
        z = If (on) <then_branch = t () => (float[4] q) {
                q = Loop (n, c, x) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] vo) {
                    co = Identity (ci)  %s }> },
            else_branch = e () => (float[4] r) { r = Relu (x) }>
        y = Neg (z) }"""
    one = from_text(text % "vo = Tanh (v)")
    two = from_text(text % "w = Tanh (v)  low = Cast <to = 16> (w)  vo = Cast <to = 1> (low)")
    inputs = {"x": np.linspace(-1, 1, 4, dtype="f"), "on": np.array(True)}
    result = onnxsmith.compare(one, two, inputs=inputs, generate=False, per_layer=True)
    assert not result.ok
    assert "in its body" in result.report.headline


NESTED = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) {
    c = Constant <value = bool {1}> ()  n = Constant <value = int64 {6}> ()
    y = Loop (n, c, x) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] vo) {
        co = Identity (ci)  m = Constant <value = int64 {3}> ()  last = Constant <value = int64 {4}> ()
        late = Equal (i, last)
        w = Loop (m, ci, v) <body = d (int64 j, bool dj, float[4] u) => (bool do, float[4] uo) {
            do = Identity (dj)  t = %s (u)  uo = Add (t, u) }>
        z = If (late) <then_branch = t () => (float[4] q) { q = %s (w) },
                       else_branch = e () => (float[4] r) { r = Identity (w) }>
        vo = Tanh (z) }> }"""


@pytest.mark.parametrize(("ops", "named"), [(("Erf", "Sin"), ("t", 1, 18)), (("Tanh", "Cos"), ("q", 1, 1))])
def test_a_fault_in_a_body_in_a_body_is_named(ops: tuple[str, str], named: tuple[str, int, int]) -> None:
    one, two = from_text(NESTED % ("Tanh", "Sin")), from_text(NESTED % ops)
    found = layers_of(onnxsmith.compare(one, two, per_layer=True)).inside
    assert found is not None
    assert (found.name, found.iteration, found.of) == named


def test_a_module_of_torchscript_is_a_side(plain: Path) -> None:
    module, args = build()
    with quiet():
        scripted = torch.jit.trace(module, args)
    assert onnxsmith.compare((scripted, args), plain, per_layer=True).ok
    model = ir.load(plain)
    culprit = approximated(model)
    found = layers_of(onnxsmith.compare((scripted, args), model, per_layer=True))
    assert found.layer(found.culprits[0]).steps[0] == culprit.name


_HEAD = '<ir_version: 8, opset_import: ["" : 17]> '
ODD = {
    "strings": "g (string[2] x) => (string[2] y) { y = Identity (x) }",
    "a sequence": "g (float[4] x) => (seq(float[4]) y) { a = Exp (x) y = SequenceConstruct (a, x) }",
    "half": "g (float16[64] x) => (float16[64] y) { a = Exp (x) b = Sqrt (a) y = Mul (a, b) }",
    "places": "g (float[8,32] x) => (float[8,3] v, int64[8,3] i) <int64[1] k = {3}> { a = Exp (x) v, i = TopK (a, k) }",
    "an output once more": "g (float[4] x) => (float[4] y, float[4] z) { y = Exp (x) z = Identity (y) }",
    "open sizes": """g (float[N,M] x) => (float[Q] y) {
        a = Exp (x) t = Constant <value_ints = [-1]> () y = Reshape (a, t) }""",
    "a loop": """g (float[4] x, int64 n) => (float[4] y, float[K,4] s) { c = Constant <value = bool {1}> ()
        y, s = Loop (n, c, x) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] vo, float[4] so) {
            co = Identity (ci) vo = Tanh (v) so = Exp (vo) }> }""",
}


@pytest.mark.parametrize("name", ODD)
def test_odd_models(name: str) -> None:
    text = _HEAD + ODD[name]
    same = onnxsmith.compare(from_text(text), from_text(text), per_layer=True)
    assert same.ok
    assert layers_of(same).culprits == ()
    if "Exp" in text:
        other = layers_of(
            onnxsmith.compare(from_text(text), from_text(text.replace("Exp", "Softplus")), per_layer=True)
        )
        assert other.culprits[0] == ("s" if name == "a loop" else "y" if name == "an output once more" else "a")


def test_a_lost_cast_is_found() -> None:
    class Half(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh((x * 3.0).half().float() + 1.0)

    with quiet():
        program = torch.onnx.export(Half(), (torch.randn(4, 32),), verbose=False)
    assert program is not None
    model = program.model
    cast = node(model, "Cast")
    cast.attributes["to"] = ir.AttrInt64("to", ir.DataType.FLOAT.value)
    cast.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
    found = layers_of(onnxsmith.compare((Half(), (torch.randn(4, 32),)), model, per_layer=True))
    assert found.layer(found.culprits[0]).steps[0] == cast.name


def test_what_is_only_moved_is_not_suspicious(tmp_path: Path) -> None:
    """The scale of the same numbers in another order has other last digits."""
    text = """<ir_version: 10, opset_import: ["": 20]> g (float[64,48,32] x, float[64,32,56] w) => (float[56,64,48] y) {
        p = MatMul(x, w)
        y = Transpose<perm = [2, 0, 1]>(p)
    }"""
    save(from_text(text), tmp_path / "m.onnx")
    found = layers_of(onnxsmith.compare(tmp_path / "m.onnx", f"{tmp_path / 'm.onnx'}@reference", per_layer=True))
    assert found.layer("y").inherited != found.layer("p").inherited
    assert found.runs == 2, "one of each side: nothing had to be given to the other"


def test_memory_in_pieces_finds_the_same(plain: Path) -> None:
    model = ir.load(plain)
    approximated(model)
    whole = layers_of(onnxsmith.compare(build(), model, per_layer=True))
    pieces = layers_of(onnxsmith.compare(build(), model, per_layer=LayerOptions(budget=200_000)))
    assert pieces.runs > whole.runs + 3
    assert pieces.culprits == whole.culprits
    assert [layer.own for layer in pieces.layers] == [layer.own for layer in whole.layers]


def test_too_few_pairs_are_no_comparison(plain: Path) -> None:
    report = onnxsmith.compare(build(), plain, per_layer=LayerOptions(least_share=0.99)).report
    assert report.verdict is Verdict.FAILED
    assert [problem.id for problem in report.problems] == ["compare/unpaired"]
    assert report.part(Verification).equal, "what is known of the outputs stays"


def test_a_graph_without_nodes_has_nothing_to_compare_by_layer() -> None:
    empty = from_text('<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] x) { }')
    report = onnxsmith.compare(empty, empty, per_layer=True).report
    assert (report.verdict, report.problems) == (Verdict.DONE, ())
    assert (
        "only outputs can be compared, not layers"
        in layers_of(onnxsmith.compare(empty, empty, per_layer=True)).notes[0]
    )


def test_outputs_of_constant_strings_are_compared_without_layers() -> None:
    """No tensor depends on an input; the strings decide, exactly."""
    text = """<ir_version: 10, opset_import: ["" : 20]> g () => (string[2] y) <string[2] s = {"a", "b"}> {
        y = StringConcat(s, s) }"""
    same = onnxsmith.compare(from_text(text), from_text(text), per_layer=True).report
    assert (same.verdict, same.problems) == (Verdict.DONE, ())
    other = onnxsmith.compare(from_text(text), from_text(text.replace('"b"', '"c"')), per_layer=True).report
    assert other.verdict is Verdict.DIFFERENT
    assert [problem.id for problem in other.problems] == ["verify/different"]


def test_the_worst_input_runs_again_to_the_bit(plain: Path, tmp_path: Path) -> None:
    model = ir.load(plain)
    epsilon(model)
    save(model, tmp_path / "bad.onnx")
    worst = tmp_path / "worst.npz"
    first = onnxsmith.compare(plain, tmp_path / "bad.onnx", worst_input=worst)
    again = onnxsmith.compare(plain, tmp_path / "bad.onnx", inputs=[str(worst)], generate=False)
    one, two = (result.report.parts[0].outputs[0] for result in (first, again))  # type: ignore[attr-defined]
    assert one.worst_abs == two.worst_abs > 0


def test_the_first_nan_is_named_with_its_inputs() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[4,8] x) => (float[4,8] y) <float[1] big = {%s}>
        { a = Mul (x, x)  b = Add (a, big)  c = Log (b)  d = Exp (c)  y = Sub (d, a) }"""
    part = layers_of(onnxsmith.compare(from_text(text % "1.0"), from_text(text % "-0.5"), per_layer=True))
    assert part.not_finite is not None
    assert part.not_finite.name == "c"
    assert part.not_finite.inputs[0].startswith("b: -0.")
    assert part.culprits[0] == "b", "the first that is wrong comes before the first that is not a number"


def test_an_error_that_float64_puts_down_to_the_reference() -> None:
    """The sum cancels: in float32 both sides keep noise, and neither is to blame."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[4,4096] x) => (float[4,1] y) <float big = {100000.0}, int64[1] axes = {1}>
        { a = Add (x, big) s = ReduceSum <keepdims: int = 1> (a, axes) %s }"""
    one = from_text(text % "m = ReduceMean (a, axes) n = Sub (a, m) y = ReduceSum (n, axes)")
    two = from_text(text % "m = ReduceMean (a, axes) o = Sub (x, m) n = Add (o, big) y = ReduceSum (n, axes)")
    part = layers_of(onnxsmith.compare(one, two, per_layer=True, tolerance=None))
    assert not any(layer.verdict == "own error" and layer.name == "m" for layer in part.layers)


def test_a_tolerance_of_ones_own(plain: Path) -> None:
    model = ir.load(plain)
    approximated(model)
    assert not onnxsmith.compare(plain, model).ok
    loose = onnxsmith.compare(plain, model, per_layer=True, tolerance=0.05)
    assert loose.ok
    assert layers_of(loose).culprits == ()


def test_inputs_may_be_an_iterable(plain: Path) -> None:
    rng = np.random.default_rng(0)
    several = ({"image": rng.standard_normal((size, 3, 16, 16)).astype(np.float32)} for size in (1, 4))
    result = onnxsmith.compare(plain, plain, inputs=several, generate=False)
    assert result.report.parts[0].runs == ("given input 1", "given input 2")  # type: ignore[attr-defined]


def test_a_module_that_cannot_be_traced_is_looked_at_as_it_runs(plain: Path) -> None:
    class Untraceable(Net):
        def forward(self, image: torch.Tensor) -> torch.Tensor:
            x = self.bn(self.first(image))
            open("/dev/null").close()  # noqa: PTH123
            x = torch.from_numpy(x.detach().numpy().copy()).flatten(2).transpose(1, 2)
            logits: torch.Tensor = self.head(self.blocks(x).mean(1))
            return logits

    torch.manual_seed(0)
    module = Untraceable().eval()
    module.load_state_dict(build()[0].state_dict())
    model = ir.load(plain)
    approximated(model)
    part = layers_of(onnxsmith.compare((module, build()[1]), model, per_layer=LayerOptions(least_share=0.1)))
    assert any("come from outside PyTorch" in note for note in part.notes)
    assert any("cannot be traced" in note for note in part.notes)
    assert part.share > 0.8
    assert part.layer(part.culprits[0]).module.startswith("blocks.1")


def test_the_report_reads_back_and_draws(plain: Path) -> None:
    from onnxsmith.cli.render.html_report import to_html

    model = ir.load(plain)
    axis(model)
    report = onnxsmith.compare(plain, model, per_layer=True).report
    assert Report.from_json(report.to_json()) == report
    page = to_html(report)
    assert page.count("<polyline") >= 3
    assert 'class="sortable"' in page
