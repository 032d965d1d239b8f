"""Fixes of searches, comparisons in part, programs of torch, keep-lists and the view."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.graph.files.text import from_text
from tests.fixes.harness import Call, Case, helps, parameters


def numbers(*shape: int) -> str:
    """Writes random numbers as ONNX text does."""
    return f"{{{', '.join(f'{one:.3f}' for one in np.random.default_rng(1).normal(size=shape).ravel())}}}"


HEAD = '<ir_version: 10, opset_import: ["": 21]>'
CHAIN = f"{HEAD} g (float[n,4] x) => (float[n,4] y) {{ a = Relu(x) y = Neg(a) }}"
SINE = f"{HEAD} g (float[n,4] p) => (float[n,4] q) {{ s = Sin(p) q = Exp(s) }}"
DENSE = f"""{HEAD}
g (float[n,8] x) => (float[n,8] y) <float[8,8] w = {{{", ".join(["0.3", "-0.7", "1.1", "0.9"] * 16)}}}> {{
  h = MatMul(x, w)
  y = Tanh(h)
}}"""
NORM = f"""{HEAD}
g (float[n,8] x) => (float[n,8] y) <float[8] s = {{1, 1, 1, 1, 1, 1, 1, 1}}> {{
  [norm] h = LayerNormalization<epsilon = 1e-5>(x, s)
  y = Tanh(h)
}}"""
BRANCH = f"""{HEAD}
g (bool c, float[n,4] x) => (float[n,4] y) {{
  y = If (c) <
    then_branch = t () => (float[n,4] b) {{
      i = Constant<value = int64 {{0}}>()
      l = SequenceConstruct(x)
      b = SequenceAt(l, i)
    }},
    else_branch = e () => (float[n,4] d) {{ d = Neg(x) }}
  >
}}"""
DARK = f"""{HEAD}
g (float[n,8] x) => (float[n,4] y) <
  float[8,16] w = {numbers(8, 16)}, float[16,4] v = {numbers(16, 4)}, float k = {{100}}
> {{
  t = Sub(x, k)
  s = Relu(t)
  h = MatMul(s, w)
  a = Relu(h)
  y = MatMul(a, v)
}}"""
"""Answers on inputs near 100, which generated inputs are not."""
DRAWN = f"{HEAD}\ng (float[n,4] x, float[n,4] z) => (float[n,4] y) {{ r = RandomUniformLike(x) y = Add(z, r) }}"
LIGHT = np.random.default_rng(0).normal(100, 1, (8, 8)).astype(np.float32)
LINEAR = "import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 2), (torch.ones(2, 3),)\n"
LOADED = LINEAR.replace(
    "    return torch.nn.Linear(3, 2),",
    "    net = torch.nn.Linear(3, 2)\n    net.load_state_dict(torch.load('weights.pt'))\n    return net,",
)


def linear() -> Any:
    """Returns a linear layer and its example."""
    import torch

    return torch.nn.Linear(3, 2).eval(), (torch.ones(2, 3),)


def program(path: Path) -> None:
    """Writes a program of torch.export."""
    import torch

    with warnings.catch_warnings(action="ignore"):
        torch.export.save(torch.export.export(*linear()), path)


def weights(path: Path) -> None:
    """Writes the weights of a linear layer."""
    import torch

    torch.save(linear()[0].state_dict(), path)


def shrunk(kept: Any) -> object:
    """Shrinks a network of two layers."""
    import torch

    network = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    return onnxsmith.shrink(network, kept)


def compat(**options: Any) -> object:
    """Exports as torch.onnx.export does."""
    from onnxsmith.compat import torch_export

    module, args = linear()
    return torch_export(module, args, **options)


def unknown_of_a_list(output: str | None = None) -> object:
    """Reduces a model that reads a list and has an operator that no runtime knows."""
    import onnx
    from onnx import TensorProto, helper

    from tests.comparison.reduction.test_odd_models import REFUSES

    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    graph = helper.make_graph(
        [helper.make_node("Geluu", ["s"], ["y"])],
        "g",
        [helper.make_value_info("s", kind)],
        [onnx.ValueInfoProto(name="y")],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])
    return onnxsmith.reduce(model, output, check=REFUSES).model


def calling(call: str) -> Any:
    """Returns a writer of a model with this call of a function, and a call of another one."""
    import onnx

    text = f"""{HEAD.replace("21]", '21, "my": 1]')} g (float[n,4] x) => (float[n,4] y) {{
      a = my.right(x)
      y = {call}
    }}
    <domain: "my", opset_import: ["": 21]> right (p) => (q) {{ q = Neg(p) }}
    <domain: "my", opset_import: ["": 21]> wrong (p) => (q) {{ q = Relu(p) }}"""
    return lambda path: onnx.save(onnx.parser.parse_model(text), path)


def dumped(path: Path) -> None:
    """Writes the values of the chain."""
    onnxsmith.dump(from_text(CHAIN), path, runtime="reference")


def reported(path: Path) -> None:
    """Writes the report of a dump of o.onnx."""
    path.write_text(onnxsmith.dump("o.onnx", runtime="reference").report.to_json())


CASES = [
    Case(
        "bench/no-subject",
        "onnxsmith bench m.onnx --subject torch --dim n=4 --seconds 0.1",
        {"m.onnx": CHAIN},
        by_hand="onnxsmith bench m.onnx --subject onnxruntime --dim n=4 --seconds 0.1",
        says=["in place of torch, name a runtime that runs ONNX files, such as onnxruntime"],
    ),
    Case(
        "bench/no-subject",
        "onnxsmith bench model.py:build --subject onnxruntime",
        {"model.py": LINEAR},
        goes_on=False,
        name="a torch model",
    ),
    Case("bisect/nothing-narrow", "onnxsmith bisect m.onnx --tolerance 1e-9 -o keep.txt", {"m.onnx": DENSE}),
    Case(
        "compare/first-error",
        "onnxsmith compare a.onnx b.onnx --per-layer",
        {"a.onnx": NORM, "b.onnx": NORM.replace("1e-5", "0.1")},
        then="onnxsmith compare a.onnx b_fixed.onnx",
    ),
    Case(
        "compare/no-part",
        "onnxsmith compare values.safetensors m.onnx --from a",
        {"m.onnx": CHAIN, "values.safetensors": dumped},
        by_hand="onnxsmith compare values.safetensors m.onnx",
        says=["remove --from and --to"],
    ),
    Case(
        "compare/no-part",
        "onnxsmith compare model.py:build m.onnx --from h",
        {"model.py": LINEAR, "m.onnx": CHAIN},
        goes_on=False,
        name="a torch model",
    ),
    Case(
        "compare/program",
        "onnxsmith inspect m.pt2 --program",
        {"m.pt2": b"no program"},
        changes={"m.pt2": program},
        says=["torch.export.save(torch.export.export(module, args), 'm.pt2')"],
    ),
    Call(
        "compat/argument",
        lambda: compat(export_params=False),
        lambda: compat(export_params=False, keep_initializers_as_inputs=True, f="m.onnx"),
        ["add keep_initializers_as_inputs=True"],
    ),
    Call(
        "compat/argument",
        lambda: compat(f="m.onnx", export_modules_as_functions=True),
        lambda: compat(f="m.onnx"),
        ["leave this argument out"],
        name="functions",
    ),
    Case(
        "edit/not-exposable",
        "onnxsmith expose m.onnx l -o e.onnx",
        {"m.onnx": BRANCH.replace("[n,4] y)", "[n,4] z)").replace("  >\n", "  >\n  z = Abs(y)\n")},
        by_hand="onnxsmith expose m.onnx y -o e.onnx",
        says=["expose a result of the If around it instead: y"],
    ),
    Case(
        "edit/not-inlined",
        "onnxsmith inline m.onnx -o i.onnx",
        {"m.onnx": calling("my.wrong(a, x)")},
        changes={"m.onnx": calling("my.wrong(a)")},
        says=["export the model again: a call or a result of my::wrong does not fit"],
    ),
    Case(
        "prune/cannot-tell",
        "onnxsmith prune m.onnx -o p.onnx --share 50%",
        {"m.onnx": DARK},
        by_hand="onnxsmith prune m.onnx -o p.onnx --share 50% --data samples.npz",
        changes={"samples.npz": {"x": LIGHT}},
        says=["numpy.savez('samples.npz', **dict(x=…))", "--data samples.npz"],
    ),
    Case(
        "inspect/program-unreadable",
        "onnxsmith inspect weights.pt --program",
        {"weights.pt": weights, "model.py": LOADED},
        by_hand="onnxsmith inspect model.py:build --program",
        says=["loads weights.pt", "give FILE.py:FUNCTION"],
    ),
    Case(
        "inspect/program-unreadable",
        "onnxsmith inspect modle.pt2 --program",
        {"model.pt2": program},
        by_hand="onnxsmith inspect model.pt2 --program",
        says=["write 'model.pt2'"],
        name="no such file",
    ),
    Call(
        "prune/other-network",
        lambda: shrunk({"0.weight": {"0": [0, 1]}, "1.weight": {"1": [0, 1]}, "val_4": {"0": [0]}}),
        lambda: shrunk({"0.weight": {"0": [0, 1]}, "1.weight": {"1": [0, 1]}}),
        ["kept.pop('val_4')"],
    ),
    Call(
        "reduce/input-kind",
        lambda: unknown_of_a_list("out"),
        unknown_of_a_list,
        ["reduce in Python and without a folder"],
    ),
    Case(
        "target/not-proved",
        "onnxsmith check m.onnx --target onnxruntime",
        {"m.onnx": DARK},
        by_hand="onnxsmith check m.onnx --target onnxruntime --input inputs.npz",
        changes={"inputs.npz": {"x": LIGHT[:2]}},
        says=["numpy.savez('inputs.npz', **dict(x=…))", "--input inputs.npz"],
    ),
    Case(
        "target/not-proved",
        "onnxsmith check m.onnx --target onnxruntime",
        {"m.onnx": DRAWN},
        then="onnxsmith check without_draws.onnx --target onnxruntime",
        name="random numbers",
    ),
    Case(
        "view/no-file",
        "onnxsmith bench model.py:build --seconds 0.1 --view v.html",
        {"model.py": LINEAR},
        by_hand="onnxsmith bench model.py:build --seconds 0.1",
        says=["leave --view out"],
    ),
    Case(
        "view/other-model",
        "onnxsmith view m.onnx --with r.json",
        {
            "m.onnx": CHAIN.replace("float[n,4] x", "float[n,4] u").replace("Relu(x)", "Relu(u)"),
            "o.onnx": SINE,
            "r.json": reported,
        },
        goes_on=False,
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
