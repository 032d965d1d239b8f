"""Fixes of edits that a step, a selector or the model does not allow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.graph.files.text import from_text
from tests.fixes.harness import Call, Case, Content, helps, parameters

NET = """
<ir_version: 10, opset_import: ["": 21]>
net (float[batch,4] x) => (float[batch,4] y, float[batch,4] z) <float[4] bias = {1, 2, 3, 4}> {
    a = Relu(x)  [add] c = Add(a, bias)  [product] y = Mul(c, c)  [gate] z = Sigmoid(a)
}
"""
BRANCHES = """
<ir_version: 10, opset_import: ["": 21]>
net (float[2,4] x, bool k) => (float[2,4] y) {
    a = Relu(x)
    [if] b = If<then_branch = t () => (float[2,4] u) { [inner] i = Neg(a)  [last] u = Abs(i) },
            else_branch = e () => (float[2,4] v) { v = Exp(a) }>(k)
    [end] y = Tanh(b)
}
"""
LOOP = """
<ir_version: 10, opset_import: ["": 21]>
net (float[2,4] x) => (float[2,4] y) <int64 n = {3}, bool k = {1}> {
    y = Loop<body = b (int64 i, bool go, float[2,4] s) => (bool g, float[2,4] t) {
        g = Identity(go)  h = SplitToSequence<axis = 0>(s)  t = ConcatFromSequence<axis = 0>(h)
    }>(n, k, x)
}
"""
FUNCTIONS = """
<ir_version: 10, opset_import: ["": 21, "own": 1]>
net (float[2,4] x) => (float[2,4] y) { a = own.Gate(x)  y = own.Gate(a) }
<domain: "own", opset_import: ["": 21]> Gate (x) => (y) { s = Sigmoid(x)  y = Mul(x, s) }
"""
IMAGES = """
<ir_version: 10, opset_import: ["": 21]>
net (float[1,3,4,4] x) => (float[1,3,4,4] y) { y = Relu(x) }
"""

PICK = """
<ir_version: 10, opset_import: ["": 21]>
net (float[3] x) => (float y) <int64 at = {1}> { a = Relu(x)  [pick] y = Gather(a, at) }
"""
GATHER = """
<ir_version: 10, opset_import: ["": 21]>
g (float[3] x) => (float[1] y) <int64[1] at = {7}> { a = Relu(x)  y = Gather(a, at) }
"""
TWO = """
<ir_version: 10, opset_import: ["": 21]>
net (float[2,3] x, float[2,3] w) => (float[2,3] y) { y = Add(x, w) }
"""
TWICE = """
<ir_version: 10, opset_import: ["": 21]>
net (float[n,4] x) => (float[n,4] y) {
    [s1] a = Sigmoid(x)  [m1] b = Mul(x, a)  [s2] c = Sigmoid(b)  [m2] y = Mul(c, b)
}
"""
UNKNOWN = """
<ir_version: 10, opset_import: ["": 20, "com.acme.ops": 3]>
net (float[1,4] x) => (float[1,4] z, float[1,4] u) {
    [fancy] y, s = com.acme.ops.Fancy(x)  [more] t = com.acme.ops.Fancy(s)  [relu] u = Relu(y)  [join] z = Add(u, t)
}
"""


def toml(text: str) -> str:
    """The patch file of these steps: `do = …` in lines, with an empty line between two steps."""
    return "\n".join(f"[[step]]\n{one}" for one in text.strip().split("\n\n"))


CONSTANT = 'do = "constant"\ntensor = "bias"\nvalue = {{ file = "{}" }}'


def bias(path: Path) -> None:
    np.save(path, np.zeros(4, np.float32))


def step(id_: str, first: str, then: str, says: list[str], model: Content = NET, name: str = "") -> Case:
    """A patch file with a mistake, and what its writer makes of it."""
    files = {"m.onnx": model, "p.toml": toml(first)}
    return Case(
        id_,
        f"onnxsmith edit m.onnx p.toml -o e.onnx{'' if id_ == 'edit/does-not-run' else ' --no-verify'}",
        files,
        changes={"p.toml": toml(then)},
        says=says,
        name=name,
    )


def verb(id_: str, first: str, then: str, says: list[str], model: Content = NET, name: str = "") -> Case:
    """A command with a mistake, and the command that its writer makes of it."""
    return Case(
        id_,
        f"onnxsmith {first} -o e.onnx --no-verify",
        {"m.onnx": model},
        by_hand=f"onnxsmith {then} -o e.onnx --no-verify",
        says=says,
        name=name,
    )


NO_OUTPUT = [
    Case("edit/no-output", "onnxsmith rename m.onnx x image --no-verify", {"m.onnx": NET}),
    Case("edit/no-output", "onnxsmith merge m.onnx m.onnx --siblings --no-verify", {"m.onnx": NET}, name="merge"),
    Case("edit/no-output", "onnxsmith split m.onnx --into 2 --no-verify", {"m.onnx": NET}, name="split"),
]
SELECTORS = [
    verb(
        "edit/no-match",
        "rename m.onnx imput image",
        "rename m.onnx x image",
        ["inspect m.onnx --nodes"],
        name="an input",
    ),
    verb("edit/no-match", "expose m.onnx relu_out", "expose m.onnx a", ["a, "], name="a tensor"),
    verb(
        "edit/no-match", "rename m.onnx n b --kind dim", "rename m.onnx batch b --kind dim", ["'batch'"], name="a dim"
    ),
    step(
        "edit/no-match",
        'do = "remove"\nnode = { op = "Sigmoids" }',
        'do = "remove"\nnode = { op = "Sigmoid" }',
        ['op = "Sigmoid"'],
        name="a node",
    ),
    step(
        "edit/no-match",
        'do = "drop-output"\noutput = "zz"',
        'do = "drop-output"\noutput = "z"',
        ["z"],
        name="an output",
    ),
    step(
        "edit/no-match",
        'do = "drop-output"\noutput = "a"',
        'do = "drop-output"\noutput = "z"',
        ["'z'"],
        name="no output",
    ),
    verb("edit/many-matches", "rename m.onnx '*' image", "rename m.onnx x image", ["'x'"]),
    step(
        "edit/many-matches",
        'do = "wire"\nnode = "*"\ninput = 1\ntensor = 2.0',
        'do = "wire"\nnode = "product"\ninput = 1\ntensor = 2.0',
        ["'product'"],
        name="nodes",
    ),
    verb(
        "edit/selector",
        "outline m.onnx own::Gate --node '{ opp = \"Sigmoid\" }'",
        "outline m.onnx own::Gate --node '{ op = \"Sigmoid\" }'",
        ["op in place of opp"],
    ),
    verb(
        "edit/selector",
        "expose m.onnx '{ producer: add }'",
        "expose m.onnx '{ producer = \"add\" }'",
        ["{ "],
        name="no TOML",
    ),
    step(
        "edit/selector",
        'do = "expose"\ntensor = { node = "add" }',
        'do = "expose"\ntensor = { producer = "add" }',
        ['{ producer = "'],
        name="of a tensor",
    ),
]
FILES = [
    Case(
        "edit/no-patch",
        "onnxsmith edit m.onnx -o e.onnx",
        {"m.onnx": NET, "p.toml": toml('do = "strip"')},
        by_hand="onnxsmith edit m.onnx p.toml -o e.onnx --no-verify",
        says=[".toml"],
    ),
    step(
        "edit/unknown-step", 'do = "remove-output"\noutput = "z"', 'do = "drop-output"\noutput = "z"', ["'drop-output'"]
    ),
    step(
        "edit/unknown-step",
        'do = "delete"\nnode = "add"',
        'do = "remove"\nnode = "add"\nkeep = 0',
        ["'remove'"],
        name="another word",
    ),
    step(
        "edit/no-match",
        'do = "cast"\nto = "float16"',
        'do = "cast"\nto = "float16"\ntensor = "bias"',
        ['tensor = "bias"'],
        name="small constants",
    ),
    step(
        "edit/step-argument",
        'do = "rename"\nold = "x"\nto = "image"',
        'do = "rename"\ntensor = "x"\nto = "image"',
        ["tensor or node or dim in place of old"],
    ),
    step(
        "edit/step-argument",
        'do = "rename"\nto = "image"',
        'do = "rename"\ntensor = "x"\nto = "image"',
        ['tensor = "x"'],
        name="rename",
    ),
    Case(
        "edit/patch-file",
        "onnxsmith edit m.onnx p.toml -o e.onnx --no-verify",
        {"m.onnx": NET, "p.toml": 'do = "strip"'},
        changes={"p.toml": toml('do = "strip"')},
        says=["[[step]]"],
    ),
    Case(
        "edit/patch-file",
        "onnxsmith edit m.onnx stripp.toml -o e.onnx --no-verify",
        {"m.onnx": NET, "strip.toml": toml('do = "strip"')},
        by_hand="onnxsmith edit m.onnx strip.toml -o e.onnx --no-verify",
        says=["strip.toml"],
        name="no file",
    ),
    Case(
        "edit/patch-file",
        "onnxsmith edit m.onnx p.toml -o e.onnx --no-verify",
        {"m.onnx": NET, "p.toml": "step: rename"},
        changes={"p.toml": toml('do = "strip"')},
        says=["[[step]]"],
        name="no TOML",
    ),
    step(
        "edit/patch-file",
        'do = "constant"\ntensor = "bias"\nvalue = { file = "b.npy" }',
        'do = "constant"\ntensor = "bias"\nvalue = [0, 0, 0, 0]',
        ["numpy.save"],
        name="no array",
    ),
    Case(
        "edit/outside",
        "onnxsmith edit m.onnx p/p.toml -o e.onnx --no-verify",
        {"m.onnx": NET, "b.npy": bias, "p/p.toml": toml(CONSTANT.format("../b.npy"))},
        by_hand="onnxsmith edit m.onnx p/p.toml -o e.onnx --no-verify",
        changes={"p/b.npy": bias, "p/p.toml": toml(CONSTANT.format("b.npy"))},
        says=["cp p/../b.npy p", "b.npy"],
    ),
    Case(
        "edit/patch-file",
        "onnxsmith edit m.onnx p.toml -o e.onnx --no-verify",
        {"m.onnx": NET, "p.toml": ""},
        changes={"p.toml": toml('do = "strip"')},
        says=["[[step]]"],
        name="empty",
    ),
    Case(
        "edit/patch-file",
        "onnxsmith replace m.onnx find.txt 'y = Relu(x)' -o e.onnx --no-verify",
        {"m.onnx": NET, "find.txt": b"\xff\xfe\x00"},
        changes={"find.txt": b"y = Relu(x)"},
        says=["UTF-8"],
        name="no text",
    ),
]
PORTS = [
    step(
        "edit/is-input", 'do = "add-input"\ntensor = "x"', 'do = "add-input"\ntensor = "bias"', ["leave the step out"]
    ),
    verb("edit/is-output", "expose m.onnx a y", "expose m.onnx a", ["a"]),
    step(
        "edit/name-taken", 'do = "rename"\ntensor = "x"\nto = "a"', 'do = "rename"\ntensor = "x"\nto = "a_1"', ["a_1"]
    ),
    verb("edit/name-taken", "expose m.onnx c --called y", "expose m.onnx c --called y_1", ["y_1"], name="expose"),
    verb(
        "edit/name-taken",
        "rename m.onnx add product --kind node",
        "rename m.onnx add product_1 --kind node",
        ["product_1"],
        name="a node",
    ),
    step(
        "edit/no-outputs", 'do = "drop-output"\noutput = "*"', 'do = "drop-output"\noutput = ["y"]', ['output = ["y"]']
    ),
    step(
        "edit/input-needed",
        'do = "drop-input"\ninput = "x"',
        'do = "drop-input"\ninput = "x"\nvalue = [[0, 0, 0, 0]]',
        ["value ="],
    ),
    step(
        "edit/shape",
        'do = "drop-input"\ninput = "x"\nvalue = [0, 0]',
        'do = "drop-input"\ninput = "x"\nvalue = [[0, 0, 0, 0]]',
        ["value = [[1.0, 1.0, 1.0, 1.0]]"],
    ),
    step(
        "edit/not-constant",
        'do = "constant"\ntensor = "c"\nvalue = 0',
        'do = "constant"\ntensor = "bias"\nvalue = 0',
        ["bias"],
    ),
    Case(
        "edit/not-constant",
        "onnxsmith edit m.onnx p.toml -o e.onnx --no-verify",
        {"m.onnx": NET, "p.toml": toml('do = "add-input"\ntensor = "c"')},
        goes_on=False,
        name="add-input",
    ),
    verb(
        "edit/not-constant",
        "cast m.onnx float16 --tensor a",
        "cast m.onnx float16 --tensor bias",
        ["bias"],
        name="cast",
    ),
    verb("edit/dtype", "cast m.onnx int8 --tensor bias", "cast m.onnx float16 --tensor bias", ["float16"]),
    verb(
        "edit/overflow",
        "cast m.onnx float16 --tensor bias",
        "cast m.onnx bfloat16 --tensor bias",
        ["bfloat16"],
        model=NET.replace("{1, 2,", "{1e6, 2,"),
    ),
    verb("edit/layout", "layout m.onnx x=NHW", "layout m.onnx x=NHWC", ["NHWC"], model=IMAGES),
    verb("edit/layout", "layout m.onnx", "layout m.onnx x=NHWC", ["x=NHWC"], model=IMAGES, name="none"),
    verb("edit/layout", "layout m.onnx NHWC", "layout m.onnx x=NHWC", ["x=NHWC"], model=IMAGES, name="no name"),
    verb("edit/ir-version", "opset m.onnx 21 --ir-version 3", "opset m.onnx 21", ["leave the IR version out"]),
]
NODES = [
    step(
        "model/shape-conflict",
        'do = "wire"\nnode = "add"\ninput = 1\ntensor = [1.0, 2.0, 3.0]',
        'do = "wire"\nnode = "add"\ninput = 1\ntensor = [1.0, 2.0, 3.0, 4.0]',
        ["correct the step"],
    ),
    step(
        "edit/no-operand",
        'do = "wire"\nnode = "product"\ninput = "X"\ntensor = 2.0',
        'do = "wire"\nnode = "product"\ninput = "B"\ntensor = 2.0',
        ["B"],
    ),
    step(
        "edit/no-operand",
        'do = "remove"\nnode = "k"',
        'do = "remove"\nnode = "k"\nkeep = 0',
        ["keep = 0"],
        model=NET.replace("[gate] z = Sigmoid(a)", "[k] z = Add(a, c)"),
        name="two",
    ),
    step(
        "edit/cycle",
        'do = "wire"\nnode = "add"\ninput = 1\ntensor = "y"',
        'do = "wire"\nnode = "add"\ninput = 1\ntensor = "x"',
        ["does not depend"],
    ),
    step(
        "edit/several-results",
        'do = "remove"\nnode = "s"',
        'do = "wire"\nnode = "gate"\ninput = 0\ntensor = "x"\n\ndo = "remove"\nnode = "s"',
        ['node = "gate", input = 0'],
        model=NET.replace("a = Relu(x)", "[s] a, p = Split<axis = 1, num_outputs = 2>(x)")
        .replace("Sigmoid(a)", "Sigmoid(p)")
        .replace("Add(a, bias)", "Concat<axis = 1>(a, a)"),
    ),
    step(
        "edit/out-of-scope",
        'do = "wire"\nnode = "end"\ninput = 0\ntensor = "i"',
        'do = "wire"\nnode = "end"\ninput = 0\ntensor = "a"',
        ["same graph"],
        model=BRANCHES,
    ),
    step(
        "edit/does-not-run",
        'do = "wire"\nnode = "pick"\ninput = 1\ntensor = 9',
        'do = "wire"\nnode = "pick"\ninput = 1\ntensor = 2',
        ["correct the step"],
        model=PICK,
    ),
    Case(
        "edit/original-does-not-run",
        "onnxsmith expose m.onnx a -o e.onnx",
        {"m.onnx": GATHER},
    ),
]
PATTERNS = [
    Case(
        "edit/no-replacement",
        "onnxsmith replace m.onnx 'Mul(c, c)' -o e.onnx",
        {"m.onnx": NET},
        by_hand="onnxsmith replace m.onnx 'Mul(c, c)' 'Pow(c, 2.0)' -o e.onnx",
        says=["operators that take the place"],
    ),
    verb(
        "edit/match-count",
        "replace m.onnx 'Mul(c, c)' 'Pow(c, 2.0)' --count 2",
        "replace m.onnx 'Mul(c, c)' 'Pow(c, 2.0)' --count 1",
        ["--count 1"],
    ),
    step(
        "edit/match-count",
        'do = "replace"\nfind = "Mul(c, c)"\nby = "Pow(c, 2.0)"\ncount = 2',
        'do = "replace"\nfind = "Mul(c, c)"\nby = "Pow(c, 2.0)"\ncount = 1',
        ["count = 1"],
        name="a file",
    ),
    verb(
        "edit/replacement",
        "replace m.onnx 'Mul(c, c)' 'Pow(x, 2.0)'",
        "replace m.onnx 'Mul(c, c)' 'Pow(c, 2.0)'",
        ["write c in place of x"],
    ),
    step(
        "edit/where",
        'do = "replace"\nfind = "Mul(c, c)"\nby = "Pow(c, 2.0)"\nwhere = { c = { type = "float32" } }',
        'do = "replace"\nfind = "Mul(c, c)"\nby = "Pow(c, 2.0)"\nwhere = { c = { dtype = "float32" } }',
        ["c = { dtype"],
    ),
    verb(
        "edit/no-match",
        "replace m.onnx 'Div(c, c)' 'Pow(c, 2.0)'",
        "replace m.onnx 'Mul(c, c)' 'Pow(c, 2.0)'",
        ["change the pattern"],
        name="a pattern",
    ),
    verb(
        "edit/not-alike",
        "outline m.onnx own::Part --find '(x) => (y) { s = Sigmoid(x) y = Mul(x, s) }'",
        "outline m.onnx own::Part --node s1 --node m1",
        ["fewer of them"],
        model=TWICE,
    ),
    verb(
        "edit/not-convex",
        "outline m.onnx own::Part --node a_ --node product",
        "outline m.onnx own::Part --node a_ --node add --node product",
        ["add"],
        model=NET.replace("a = Relu", "[a_] a = Relu"),
    ),
]
PARTS = [
    verb(
        "edit/undefined",
        "extract m.onnx --from a --to y",
        "extract m.onnx --from a --from x --to y",
        ["--from"],
        model=NET.replace("Mul(c, c)", "Mul(c, x)"),
    ),
    verb("edit/unused-cut", "extract m.onnx --from c --to z", "extract m.onnx --to z", ["leave it out"]),
    verb(
        "edit/unused-cut",
        "extract m.onnx --from y --to c",
        "extract m.onnx --from c --to y",
        ["swap the two ends"],
        name="turned",
    ),
    verb("edit/empty-part", "extract m.onnx --from a --to a", "extract m.onnx --from a --to c", ["behind it"]),
    verb("edit/untyped", "extract m.onnx --to s", "extract m.onnx --to z", ["--to z"], model=UNKNOWN),
]
DIMS = [
    verb(
        "edit/frozen-dim", "set-dim m.onnx x:0=batch", "set-dim m.onnx x:0=batch w:0=batch", ['"w:0=batch"'], model=TWO
    ),
]
PRE, POST = 'do = "preprocess"', 'do = "postprocess"'
PROCESSING = [
    step("edit/not-a-picture", f"{PRE}\nsize = [8, 8]", PRE, ["leave size out"], model=IMAGES),
    step(
        "edit/not-a-picture",
        PRE,
        f"{PRE}\nsize = [224, 224]",
        ["size = [224, 224]"],
        model=IMAGES.replace("4,4", "h,w"),
        name="any size",
    ),
    Case(
        "edit/old-opset",
        "onnxsmith edit m.onnx p.toml -o e.onnx --no-verify",
        {"m.onnx": IMAGES.replace("21", "17"), "p.toml": toml(PRE)},
        then="onnxsmith edit opset_18.onnx p.toml -o e.onnx --no-verify",
    ),
    Case(
        "edit/processing-differs",
        "onnxsmith edit m.onnx p.toml -o e.onnx --runtime openvino",  # its Resize does not smooth
        {"m.onnx": IMAGES, "p.toml": toml(PRE)},
    ),
    step(
        "edit/no-processing",
        f'{PRE}\n\ndo = "remove-processing"\nport = "y"',
        f'{PRE}\n\ndo = "remove-processing"\nport = "x"',
        ["port = 'x'"],
        model=IMAGES,
    ),
    step(
        "edit/not-scores",
        f'{POST}\noutput = "y"',
        f'{POST}\noutput = "y"\nmethod = "top-k"\nsoftmax = false',
        ["softmax = false"],
        model=NET.replace("y = Mul(c, c)", "y = Softmax(c)"),
    ),
    step(
        "edit/port-order",
        'do = "order"\noutputs = ["z"]',
        'do = "order"\noutputs = ["z", "y"]',
        ['outputs = ["z", "y"]'],
    ),
]


def edited(change: Any, **options: Any) -> Callable[[], object]:
    """An edit in Python."""

    def call() -> None:
        with onnxsmith.edit(from_text(NET), "e.onnx", verify=False, **options) as m:
            change(m)

    return call


CALLS: list[Case | Call] = [
    Call("edit/nothing", edited(lambda m: None), edited(lambda m: m.rename("x", "image")), ['m.rename("x", "image")']),
    Call(
        "edit/not-recorded",
        edited(lambda m: m.constant("bias", np.array([b"a"])), write_patch="p.toml"),
        edited(lambda m: m.constant("bias", np.ones(4, np.float32)), write_patch="p.toml"),
        ["give an array of numbers"],
    ),
    Call(
        "edit/dtype",
        edited(lambda m: m.constant("bias", np.ones(4))),
        edited(lambda m: m.constant("bias", np.ones(4).astype("float32"))),
        ['value.astype("float32")'],
    ),
]

CASES = [*NO_OUTPUT, *SELECTORS, *FILES, *PORTS, *NODES, *PATTERNS, *PARTS, *DIMS, *PROCESSING, *CALLS]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
