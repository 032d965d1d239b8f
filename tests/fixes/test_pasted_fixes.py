"""Fixes that an outsider pasted, and that did not help as they were: each is carried out as it is printed now."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.verification import REFUSES, OutputCheck, Verification
from onnxsmith.editor.dims.tried_sizes import does_not_run
from onnxsmith.exporter.lint.numpy import _fix
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.patterns import pattern_search
from onnxsmith.verification.verification_verdict import problems
from tests.fixes.harness import Call, Case, helps, parameters

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
CNN = f"""{HEAD}
g (float[batch,3,8,8] x) => (float[batch,4,6,6] y) <float[4,3,3,3] w = {{{", ".join(["0.5", "-0.25"] * 54)}}}> {{
  [conv] c = Conv(x, w)
  [relu] y = Relu(c)
}}"""
MLP = f"""{HEAD}
g (float[n,4] x) => (float[n,4] y) <float[4,4] w = {{{", ".join(map(str, range(16)))}}}> {{
  [first] a = MatMul(x, w)
  [middle] b = Relu(a)
  [last] y = Neg(b)
}}"""
HALF = f"{HEAD} g (float16[n,4] feat) => (float16[n,4] p) {{ p = Sigmoid(feat) }}"
WIDER = f"{HEAD} g (float[n,6] feat) => (float[n,6] p) {{ p = Sigmoid(feat) }}"
TWO_INPUTS = f"{HEAD} g (float[n,4] a, float[n,4] b) => (float[n,4] p) {{ p = Add(a, b) }}"
GRID = f"""{HEAD}
g (float[1,3,8,8] x, float[1,4,4,2] grid) => (float[1,3,4,4] y) {{ [sample] y = GridSample(x, grid) }}"""
RESHAPED = f"{HEAD} g (float[n,4] x) => (float[2,4] y) <int64[2] shape = {{2, 4}}> {{ y = Reshape(x, shape) }}"
LAST = CNN.replace("[conv] c = Conv(x, w)", "t = Transpose<perm = [0, 3, 1, 2]>(x) [conv] c = Conv(t, w)").replace(
    "float[batch,3,8,8] x", "float[batch,8,8,3] x"
)
REFUSED_TWICE = f"""{HEAD.replace("21", "17")}
g (float[3,3] x) => (float y, int64[2,k] z) {{ y = Det(x) z = NonZero(x) }}"""
FIXED = {"d/fixed.onnx": CNN.replace("batch", "1")}
IMAGES = {"x": np.ones((1, 8, 8, 3), np.float32)}
DFT = f"""{HEAD.replace("21", "17")}
g (float[1,8,2] x) => (float[1,8,2] y) {{ [dft] y = DFT(x) }}"""
WIDE = f"""{HEAD}
g (float[n,64] x) => (float[n,64] y) <float[64,64] w = {{{", ".join(["0.5", "-0.25"] * 2048)}}}> {{
  [first] a = MatMul(x, w)
  [last] y = Relu(a)
}}"""
OWN = f"""{HEAD.replace("21]", '21, "my.ops": 1]')}
g (float[n] x) => (float[n] y) {{ y = my.ops.Own(x) }}"""
CONVS = f"""{HEAD}
g (float[batch,3,8,8] x) => (float[batch,4,4,4] y) <
  float[4,3,3,3] w = {{{", ".join(["0.5", "-0.25"] * 54)}}},
  float[4] b = {{1, 2, 3, 4}},
  float[4,4,3,3] v = {{{", ".join(["0.5"] * 144)}}}
> {{
  [conv] c = Conv(x, w, b)
  [relu] r = Relu(c)
  [last] y = Conv(r, v)
}}"""


def objects(path: Path) -> None:
    """Writes an array of objects."""
    np.save(path, np.array([1, None], object), allow_pickle=True)


def padded(**attributes: Any) -> object:
    """Builds a convolution with these attributes."""
    with onnxsmith.build(verify=False) as g:
        x = g.input("x", "float32", ["n", 3, 8, 8])
        g.output("y", g.Conv(x, np.ones((4, 3, 3, 3), np.float32), **attributes))
    return g.model


def silu(g: Any, x: Any) -> Any:
    """Writes SiLU as its fix does."""
    return g.Mul(x, g.Sigmoid(x))


def assigned(g: Any, x: Any) -> Any:
    """Assigns a row of a tensor, which no tensor of a graph takes."""
    x[0] = 1.0
    return x


def of_torch(g: Any, x: Any) -> Any:
    """Calls a function of torch."""
    import torch

    return torch.relu(x)


def made(function: Any) -> Any:
    """Returns a function that builds a model with the result of `function`."""

    def build() -> object:
        with onnxsmith.build(verify=False) as g:
            g.output("z", function(g, g.input("x", "float32", ["n", 4])))
        return g.model

    return build


def linear(*args: Any, **options: Any) -> object:
    """Exports a linear layer."""
    import torch

    return onnxsmith.export(torch.nn.Linear(4, 3), *args, verify=False, **options)


def rand(*sizes: int) -> Any:
    """Returns a tensor of torch."""
    import torch

    return torch.rand(*sizes)


def samples(*values: float) -> dict[str, Any]:
    """Returns a folder of data for WIDE: a file for each value."""
    return {f"data/{index}.npz": {"x": np.full((1, 64), one, np.float32)} for index, one in enumerate(values)}


def found(model: Any) -> object:
    """Finds a pattern."""
    return pattern_search.find(model, "Relu(x)")


def edited(step: Any) -> object:
    """Edits a model with two convolutions in memory."""
    with onnxsmith.edit(from_text(CONVS)) as model:
        step(model)
    return model.result


def twice(path: Path) -> None:
    """Writes a model with two definitions of one name."""
    import onnx

    model = onnx.parser.parse_model(
        f"{HEAD} g (float[2] x) => (float[2] y) {{ a = Neg(x) [two] b = Relu(x) y = Abs(a) }}"
    )
    model.graph.node[1].output[0] = "a"
    onnx.save(model, path)


CASES = [
    Case(
        "edit/no-match",
        "onnxsmith expose m.onnx relu1 -o e.onnx",
        {"m.onnx": CNN.replace("[conv]", "[relu1]")},
        by_hand="onnxsmith expose m.onnx c -o e.onnx",
        says=["'relu1' is the name of a node", "result, c"],
        name="the name of a node",
    ),
    Case(
        "edit/no-match",
        "onnxsmith expose m.onnx nowhere -o e.onnx",
        {"m.onnx": MLP.replace("[first]", "n0 = Neg(x) n1 = Neg(n0) n2 = Neg(n1) [first]")},
        by_hand="onnxsmith inspect m.onnx --nodes",
        says=["`onnxsmith inspect m.onnx --nodes` lists the inputs and results of all nodes"],
        name="no near name",
    ),
    Case(
        "export/opset",
        "onnxsmith opset dft.onnx 11 -o o.onnx",
        {"dft.onnx": DFT},
        goes_on=False,
        name="at its lowest opset",
    ),
    Case(
        "input/unreadable",
        "onnxsmith run m.onnx --input x=obj.npy",
        {"m.onnx": MLP, "obj.npy": objects},
        changes={"obj.npy": lambda path: np.save("obj.npy", np.ones((2, 4), np.float32))},
        says=["numpy.save('obj.npy', array)"],
        name="an array of objects",
    ),
    Call("build/attribute", lambda: padded(padding=1), lambda: padded(pads=[1, 1, 1, 1]), ["write pads=[1, 1, 1, 1]"]),
    Call("build/attribute", lambda: padded(pads=1), lambda: padded(pads=[1, 1, 1, 1]), ["write pads=[1, 1, 1, 1]"]),
    Call(
        "edit/does-not-run",
        lambda: edited(lambda m: m.set("conv", {"strides": [2]})),
        lambda: edited(lambda m: m.set("conv", {"strides": [2, 2]})),
        ["strides has 1 number, not 2: write strides=[2, 2]"],
        name="strides",
    ),
    Call(
        "edit/does-not-run",
        lambda: edited(lambda m: m.constant("b", [1.0, 2.0])),
        lambda: edited(lambda m: m.constant("b", [1.0, 2.0, 3.0, 4.0])),
        ["at Conv conv, B has the shape [2], not [4]", "give B 4 numbers"],
        name="bias",
    ),
    Call(
        "edit/does-not-run",
        lambda: edited(lambda m: m.insert("Concat", after="r", operands=["$", "r"], attributes={"axis": 1})),
        lambda: edited(lambda m: m.insert("Concat", after="r", operands=["$", "r"], attributes={"axis": 0})),
        [
            "at Conv last, W has the shape [4, 4, 3, 3], not [M, 8, …]",
            "leave out the step that changed an operand of this node",
        ],
        name="channels",
    ),
    Call("build/operator", made(lambda g, x: g.Silu(x)), made(silu), ["write g.Mul(x, g.Sigmoid(x))"], name="SiLU"),
    Call(
        "build/symbolic",
        made(assigned),
        made(lambda g, x: g.ScatterND(x, [[0]], np.full((1, 4), 1.0, np.float32))),
        ["write x = g.ScatterND(x, [[0]], np.full((1, 4), 1.0, np.float32))"],
        name="an element",
    ),
    Call("build/symbolic", made(of_torch), made(lambda g, x: g.Relu(x)), ["write g.Relu(…)"], name="torch"),
    Call(
        "model/not-given",
        lambda: found("m.onnx"),
        lambda: found(from_text(MLP)),
        ["write find(onnxsmith.load('m.onnx'), pattern)"],
        name="a path",
    ),
    Call(
        "export/no-inputs",
        linear,
        lambda: linear((rand(1, 4),)),
        ["onnxsmith.export(module, (torch.rand("],
        name="in Python",
    ),
    Call(
        "export/arguments",
        lambda: linear(inputs="input=float32[2,4]"),
        lambda: linear(inputs=["input=float32[2,4]"]),
        ['inputs=["input=float32[2,4]"]'],
        name="one text",
    ),
    Case(
        "build/operator",
        "onnxsmith replace m.onnx 'Relu(x)' 'Silu(x)' --changes -o o.onnx",
        {"m.onnx": MLP},
        by_hand="onnxsmith replace m.onnx 'Relu(x)' 'Mul(x, Sigmoid(x))' --changes -o o.onnx",
        says=["write Mul(x, Sigmoid(x))"],
        name="a function of torch",
    ),
    Case(
        "build/operator",
        "onnxsmith replace m.onnx 'Relu(x)' 'Foo(x)' --changes -o o.onnx",
        {"m.onnx": MLP},
        by_hand="onnxsmith replace m.onnx 'Relu(x)' 'my.domain.Foo(x)' --no-verify -o o.onnx",
        says=["my.domain.Foo", "--no-verify"],
        name="no near name",
    ),
    Case(
        "pattern/text",
        "onnxsmith replace m.onnx 'y = Relu(x)' 'op.Max(x, x)' --changes -o o.onnx",
        {"m.onnx": MLP},
        by_hand="onnxsmith replace m.onnx 'y = Relu(x)' 'Max(x, x)' --changes -o o.onnx",
        says=["write Max(x, x)"],
        name="the words of Python",
    ),
    Case(
        "merge/no-joint",
        "onnxsmith merge a.onnx b.onnx -o o.onnx",
        {"a.onnx": MLP.replace("(float[n,4] y)", "(float[n,4] y, float[n,4] b)"), "b.onnx": WIDER},
        by_hand="onnxsmith merge a.onnx b.onnx --siblings -o o.onnx",
        says=["no output fits an input in dtype and shape", "--siblings"],
        name="none fits",
    ),
    Case(
        "edit/no-match",
        "onnxsmith set-dim m.onnx batch=4 -o o.onnx",
        {"m.onnx": CNN.replace("batch", "1")},
        by_hand="onnxsmith set-dim m.onnx x:0=batch -o o.onnx",
        says=['write "x:0=batch" to allow any size on axis 0'],
        name="a fixed size",
    ),
    Case(
        "quantize/metric",
        "onnxsmith quantize m.onnx --to int8 --data data --no-time -o o.onnx",
        {"m.onnx": WIDE, **samples(np.nan, 1, np.nan, 2, 3, 4)},
        by_hand="onnxsmith quantize m.onnx --to int8 --data kept --no-time -o o.onnx",
        changes={name.replace("data", "kept"): one for name, one in samples(1, 2, 3, 4).items()},
        says=["leave them out of the data: 0.npz, 2.npz"],
        name="NaN in the data",
    ),
    Case(
        "quantize/no-data",
        "onnxsmith quantize m.onnx --to int8 --data data --no-time -o o.onnx",
        {"m.onnx": WIDE, **samples(1)},
        changes=samples(1, 2),
        says=["give two samples or more"],
        name="one sample",
    ),
    Case(
        "runtime/failed",
        "onnxsmith run m.onnx --input ids.npz",
        {
            "m.onnx": f"{HEAD} g (int64[n] ids) => (float[n] y) <float[3] table = {{1, 2, 3}}> "
            "{ [look] y = Gather(table, ids) }",
            "ids.npz": {"ids": np.array([1, 5])},
        },
        changes={"ids.npz": {"ids": np.array([1, 2])}},
        says=["give indices from 0 to 2", "node 'look'"],
        name="an index outside",
    ),
    Case(
        "runtime/unknown-operator",
        "onnxsmith run m.onnx --random",
        {"m.onnx": OWN},
        goes_on=False,
        name="its nodes",
    ),
    *[
        Case("target/refused", f"onnxsmith check m.onnx --target {target}", {"m.onnx": text}, goes_on=False, name=name)
        for name, target, text in (
            ("an operator", "tract", f"{HEAD} g (float[3,3] x) => (float y) {{ y = Det(x) }}"),
            ("two operators", "rknn", REFUSED_TWICE),
            ("an operator of the user's", "openvino", OWN),
        )
    ],
    Case("export/opset", "onnxsmith opset g.onnx 11 -o o.onnx", {"g.onnx": GRID}, goes_on=False, name="opset"),
    Case(
        "edit/step-argument",
        "onnxsmith outline m.onnx Gate --node relu -o o.onnx",
        {"m.onnx": CNN},
        goes_on=False,
        name="outline",
    ),
    Case(
        "edit/step-argument",
        "onnxsmith outline m.onnx my.ops::Gate -o o.onnx",
        {"m.onnx": CNN},
        name="outline of nothing",
    ),
    Case(
        "edit/step-argument",
        "onnxsmith strip m.onnx --what weights -o o.onnx",
        {"m.onnx": CNN},
        by_hand="onnxsmith strip m.onnx --what docs -o o.onnx",
        says=["--what docs"],
        name="strip",
    ),
    Case(
        "bench/no-batch",
        "onnxsmith bench d/fixed.onnx --seconds 1 --batch 1,4",
        FIXED,
        by_hand="onnxsmith set-dim d/fixed.onnx x:0=batch -o dynamic.onnx",
        says=["`onnxsmith set-dim d/fixed.onnx x:0=batch -o dynamic.onnx`"],
    ),
    Case(
        "input/syntax",
        "onnxsmith run m.onnx --input x=float[batch,3,8,8]",
        {"m.onnx": CNN},
        by_hand="onnxsmith run m.onnx --input 'x=float[2,3,8,8]'",
        says=["--input 'x=float[2,3,8,8]'"],
    ),
    Case(
        "edit/does-not-run",
        "onnxsmith set-dim m.onnx n=5 -o o.onnx",
        {"m.onnx": RESHAPED},
        by_hand="onnxsmith set-dim m.onnx n=2 -o o.onnx",
        says=["write n=2"],
        name="no input can work",
    ),
    Case(
        "verify/different",
        "onnxsmith compare a.onnx b.onnx",
        {"a.onnx": CNN, "b.onnx": LAST},
        by_hand="onnxsmith layout b.onnx x=NCHW -o nchw.onnx",
        says=["`onnxsmith layout b.onnx x=NCHW -o nchw.onnx`"],
        name="another layout",
    ),
    Case(
        "merge/types",
        "onnxsmith merge a.onnx b.onnx -o o.onnx",
        {"a.onnx": MLP, "b.onnx": HALF},
        changes={
            "fit.toml": '[[step]]\ndo = "insert"\nop = "Cast"\nafter = "y"\nattributes = { to = "float16" }\n',
        },
        by_hand="onnxsmith edit a.onnx fit.toml -o fitting.onnx",
        says=[
            "`onnxsmith edit a.onnx fit.toml -o fitting.onnx`",
            'op = "Cast"\nafter = "y"\nattributes = { to = "float16" }',
        ],
    ),
    Case("merge/no-joint", "onnxsmith merge a.onnx b.onnx -o o.onnx", {"a.onnx": MLP, "b.onnx": TWO_INPUTS}),
    Case("merge/no-joint", "onnxsmith merge a.onnx b.onnx -o o.onnx", {"a.onnx": MLP, "b.onnx": TWO_INPUTS}, nth=1),
    Case(
        "run/wrong-shape",
        "onnxsmith run m.onnx --input x.npz",
        {"m.onnx": CNN, "x.npz": IMAGES},
        changes={"x.npz": {"x": IMAGES["x"].transpose(0, 3, 1, 2)}},
        says=["array.transpose(0, 3, 1, 2)"],
    ),
    Case(
        "run/wrong-shape",
        "onnxsmith run m.onnx --input x.npz",
        {"m.onnx": CNN, "x.npz": {"x": IMAGES["x"][0]}},
        changes={"x.npz": {"x": IMAGES["x"][0].transpose(2, 0, 1)[None]}},
        says=["array.transpose(2, 0, 1)[None]"],
        name="no batch, channels last",
    ),
    Case("run/missing-input", "onnxsmith run m.onnx", {"m.onnx": CNN}),
    Case("run/missing-input", "onnxsmith run m.onnx", {"m.onnx": CNN}, nth=1, name="sizes of the user"),
    Case(
        "edit/layout",
        "onnxsmith layout m.onnx x=NHWC -o o.onnx",
        {"m.onnx": MLP},
        by_hand="onnxsmith layout m.onnx x=1,0 -o o.onnx",
        says=["leave x as it is", "1,0 swaps the two"],
    ),
    Case(
        "profile/unknown",
        "onnxsmith check m.onnx --target onnxruntime@1.12",
        {"m.onnx": MLP.replace("ir_version: 10", "ir_version: 8").replace('"": 21', '"": 17')},
        by_hand="onnxsmith check m.onnx --target onnxruntime@1.16",
        says=["write onnxruntime@1.16"],
    ),
    Case(
        "pattern/text",
        "onnxsmith replace m.onnx 'Relu(x' 'Clip(x, 0.0)' -o o.onnx",
        {"m.onnx": CNN},
        by_hand="onnxsmith replace m.onnx 'Relu(x)' 'Clip(x, 0.0)' -o o.onnx",
        says=["close the bracket: Relu(x)"],
    ),
    Case("export/target-syntax", "onnxsmith export m.onnx -o o.onnx", {"m.onnx": CNN}, goes_on=False),
    Case(
        "prune/saliency",
        "onnxsmith prune m.onnx --by first-order --share 30% -o o.onnx",
        {"m.onnx": CNN},
        by_hand="onnxsmith explain prune/saliency",
        says=["`onnxsmith explain prune/saliency` prints the lines of torch code that write this file"],
    ),
    Case(
        "model/duplicate-name",
        "onnxsmith simplify m.onnx -o o.onnx",
        {"m.onnx": twice},
        changes={"m.onnx": f"{HEAD} g (float[2] x) => (float[2] y) {{ a = Neg(x) [two] a_2 = Relu(x) y = Abs(a_2) }}"},
        says=["onnx.load('m.onnx')", "nodes[1].output[0] = 'a_2'", "nodes[2].input[0] = 'a_2'  # Abs -> y"],
    ),
    Case(
        "bench/no-dimension",
        "onnxsmith bench d/fixed.onnx --seconds 1 --dim batch=4",
        FIXED,
        by_hand="onnxsmith set-dim d/fixed.onnx x:0=batch -o dynamic.onnx",
        says=["`onnxsmith set-dim d/fixed.onnx x:0=batch -o dynamic.onnx`"],
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)


def written(folder: Path, **texts: str) -> list[Path]:
    """Writes models, and returns their paths."""
    paths = [folder / f"{name}.onnx" for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        save(from_text(text), path)
    return paths


def refusal(part: OutputCheck) -> Problem:
    """The problem of a verification with this output."""
    return problems(Verification("a", "b", verified=True, equal=False, outputs=(part,)))[0]


def output(reason: str, worst: float = 0.0) -> OutputCheck:
    return OutputCheck("y", "float", False, worst, worst, 1.0, 1e-6, "", 1, reason=reason)


def test_a_refused_input_is_no_difference_of_numbers() -> None:
    assert "no numbers were compared" in refusal(output(f"{REFUSES}: it has no input b")).why
    assert "rounding explains" not in refusal(output("shape [2] became [3]")).why
    assert "by more than rounding explains" in refusal(output("20 of 20 elements are apart", 0.5)).why


def test_a_compare_of_other_inputs_names_both(tmp_path: Path) -> None:
    one, two = written(tmp_path, a=CNN, b=MLP)
    found = onnxsmith.compare(one, two).report.problems[0]
    assert "the reference x float[batch,3,8,8], the candidate x float[n,4]" in found.why


def test_sizes_that_cannot_be_reshaped_get_no_such_advice(tmp_path: Path) -> None:
    one, two = written(tmp_path, a=MLP, b=WIDER)
    with pytest.raises(OnnxsmithError) as raised:
        onnxsmith.merge(one, two, tmp_path / "o.onnx")
    assert "no Transpose or Reshape turns [n,4] into [n,6]" in raised.value.problem.fix


def test_sizes_at_which_a_merged_model_fails_are_named(tmp_path: Path) -> None:
    shaped = MLP.replace("[last] y = Neg(b)", "s = Constant<value = int64[2] {-1, 6}>() y = Reshape(b, s)")
    one, two = written(tmp_path, a=shaped.replace("(float[n,4] y)", "(float[k,6] y)"), b=WIDER)
    result = onnxsmith.merge(one, two, tmp_path / "o.onnx")
    assert "the merged model fails at n = 1, 2, 4" in result.report.headline


def test_sizes_that_an_edit_loses_are_named(tmp_path: Path) -> None:
    [path] = written(tmp_path, a=MLP)
    with onnxsmith.edit(path, tmp_path / "o.onnx") as model:
        model.insert("Reshape", after="y", operands=[[-1, 6]])
    assert "fails at n = 1, 2, 4, although the original runs there" in model.result.report.headline


def test_inputs_of_the_second_keep_their_names_in_a_merged_model(tmp_path: Path) -> None:
    one, two = written(tmp_path, a=MLP, b=TWO_INPUTS)
    for wires, names in (({"y": "a"}, ["x", "b"]), ({}, ["x", "a", "b"])):
        result = onnxsmith.merge(one, two, tmp_path / "o.onnx", wires=wires)
        assert result.ok, result.report.problems
        assert [value.name for value in result.model.graph.inputs] == names


def test_an_input_called_as_an_output_of_the_first_is_renamed(tmp_path: Path) -> None:
    one, two = written(
        tmp_path, a=MLP, b=TWO_INPUTS.replace("float[n,4] b", "float[n,4] y").replace("(a, b)", "(a, y)")
    )
    result = onnxsmith.merge(one, two, tmp_path / "o.onnx", wires={})
    assert result.ok, result.report.problems


def test_generated_inputs_on_which_a_model_overflows_are_left_out(tmp_path: Path) -> None:
    weights = f"float[1] k = {{1e17}}, float[4,4] w = {{{', '.join(['0.5'] * 16)}}}"
    text = f"""{HEAD} g (float[n,4] x) => (float[n,4] y) <{weights}> {{
      a = Mul(x, k) b = Div(a, k) c = MatMul(b, w) big = Mul(a, a) s = Sub(big, big) y = Add(c, s) }}"""
    [path] = written(tmp_path, a=text)
    result = onnxsmith.quantize(path, tmp_path / "o.onnx", to="float16")
    assert not any(one.id == "quantize/metric" for one in result.report.problems)


def test_an_operator_of_a_later_opset_is_called_so(tmp_path: Path) -> None:
    import onnx

    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Gelu(x) }'
    )
    with pytest.raises(OnnxsmithError) as raised:
        onnxsmith.run(model, {"x": np.zeros(2, np.float32)}, runtime="onnxruntime")
    assert "Gelu exists since opset 20, but the model declares opset 17" in str(raised.value)


def test_a_table_that_takes_older_opsets_only_names_the_command(tmp_path: Path) -> None:
    [path] = written(tmp_path, a=CNN)
    (refused,) = onnxsmith.check(path, ["rknn"]).report.problems
    assert "--target rknn --fix -o fixed.onnx" in refused.fix


def test_a_size_that_was_refused_is_not_offered() -> None:
    refused = {6: problem("runtime/failed", "onnxruntime refused or failed")}
    assert "--dim chan=6 out" in does_not_run("chan", 3, refused, 6).problem.fix
    fix = does_not_run("chan", 3, refused, None).problem.fix
    assert "chan=6" not in fix
    assert "leave the dimension at 3" in fix


def test_the_cause_of_an_own_message_is_known() -> None:
    from onnxsmith.viewer.inspection.explain import explain

    report = explain("onnxsmith: onnxruntime does not know the operator my.ops:FancyNorm")
    assert "FancyNorm" in report.headline


def test_a_function_that_torch_lacks_is_not_promised() -> None:
    code: Any = SimpleNamespace(torch="torch")
    call: Any = ast.parse("scipy.ndimage.gaussian_filter(x, 1)", mode="eval").body
    assert _fix(call, None, code).startswith("torch has no function gaussian_filter")
    call = ast.parse("np.tanh(x)", mode="eval").body
    assert _fix(call, ast.parse("torch.tanh(x)", mode="eval").body, code) == "use torch: torch.tanh(x)"


def test_an_operand_that_a_step_made_unfit_is_to_be_changed(tmp_path: Path) -> None:
    text = MLP.replace("[middle] b = Relu(a)", "[middle] b = MatMul(a, v)").replace(
        "[last] y = Neg(b)", "y = MatMul(b, u)"
    )
    zeros = ", ".join(["0"] * 24)
    more = "> {\n  [first]".replace(">", f", float[4,6] v = {{{zeros}}}, float[6,4] u = {{{zeros}}}>", 1)
    [path] = written(tmp_path, a=text.replace("> {\n  [first]", more))
    with pytest.raises(OnnxsmithError) as raised, onnxsmith.edit(path, tmp_path / "o.onnx") as model:
        model.remove(node="middle")
    assert "leave out the step" in raised.value.problem.fix


def test_an_output_without_a_shape_is_named(tmp_path: Path) -> None:
    import onnx

    model = onnx.parser.parse_model(f"{HEAD} g (float[2] x) => (float[2] y) {{ y = Relu(x) }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "m.onnx")
    found = onnxsmith.simplify(tmp_path / "m.onnx", tmp_path / "o.onnx").report.problems
    assert all("y" in one.fix for one in found if one.id == "model/off-specification")
