"""Fixes of inputs and outputs of commands, and of the commands that join, show and explain models."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.fixes.harness import Call, Case, helps, parameters

NET = """
<ir_version: 10, opset_import: ["": 21]>
net (float[batch,4] x) => (float[batch,4] y, float[batch,4] z) <float[4] bias = {1, 2, 3, 4}> {
    a = Relu(x)  [add] c = Add(a, bias)  [product] y = Mul(c, c)  [gate] z = Sigmoid(a)
}
"""
WEIGHTED = """
<ir_version: 10, opset_import: ["": 21]>
net (float[n,k] x) => (float[n,2] y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> { y = MatMul(x, w) }
"""
HEAD = """
<ir_version: 10, opset_import: ["": 21]>
head (float[batch,4] features) => (float[batch,4] top) { top = Neg(features) }
"""
IMAGE = """
<ir_version: 10, opset_import: ["": 21]>
net (float[1,3,4,4] x) => (float[1,3,4,4] y) { y = Sqrt(x) }
"""
TWO = """
<ir_version: 10, opset_import: ["": 21]>
net (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }
"""
LIST = """
<ir_version: 10, opset_import: ["": 21]>
net (float[2] x) => (seq(float[1]) s) { s = SplitToSequence<axis = 0>(x) }
"""
GATE = """
<ir_version: 10, opset_import: ["": 21, "own": 1]>
net (float[2,4] x) => (float[2,4] y) { y = own.Gate(x) }
<domain: "own", opset_import: ["": 21]> Gate (x) => (y) { s = Sigmoid(x)  y = Mul(x, s) }
"""
BOARD = """
title = "My board"
unlisted = "refused"
max_rank = 4

[[operators]]
names = ["Relu", "Add", "Mul", "Sigmoid"]
"""
PHOTO = np.zeros((4, 4, 3), np.uint8)


def photo(path: Path) -> None:
    from PIL import Image

    Image.fromarray(PHOTO).save(path)


def checked(path: Path) -> None:
    path.write_text(onnxsmith.inspect(from_text(NET), nodes=True, costs=True).to_json())


def plain(path: Path) -> None:
    path.write_text(onnxsmith.inspect(from_text(NET)).to_json())


def folder(path: Path) -> None:
    path.mkdir()


def report(command: str, model: str = NET) -> object:
    """Writes the report of a command on a model in the same folder."""

    def write(path: Path) -> None:
        own = path.with_suffix(".onnx")
        save(from_text(model), own)
        path.write_text(getattr(onnxsmith, command)(own).report.to_json())

    return write


FILES = [
    Case(
        "save/needed",
        "onnxsmith run m.onnx --input i.npz -o i.npz",
        {"m.onnx": TWO, "i.npz": {"x": np.ones(2, np.float32), "w": np.ones(2, np.float32)}},
        by_hand="onnxsmith run m.onnx --input i.npz -o i_2.npz",
        says=["i_2.npz"],
    ),
    Case(
        "save/needed",
        "onnxsmith inspect m.onnx --html n.onnx",
        {"m.onnx": TWO, "n.onnx": TWO},
        by_hand="onnxsmith inspect m.onnx --html n.html",
        says=["n.html"],
        name="a page",
    ),
    Case(
        "save/not-a-file",
        "onnxsmith rename m.onnx x image -o e.onnx --no-verify",
        {"m.onnx": NET, "e.onnx": os.mkfifo},
        by_hand="onnxsmith rename m.onnx x image -o e_2.onnx --no-verify",
        says=["e_2.onnx"],
    ),
    Case(
        "run/name-too-long",
        f"onnxsmith rename m.onnx x image -o {'e' * 251}.onnx --no-verify",
        {"m.onnx": NET},
        by_hand="onnxsmith rename m.onnx x image -o e.onnx --no-verify",
        says=["shorter path"],
    ),
    Case("save/no-folder", "onnxsmith rename m.onnx x image -o out/e.onnx --no-verify", {"m.onnx": NET}),
    Case(
        "save/failed",
        "onnxsmith rename m.onnx x image -o out --no-verify",
        {"m.onnx": NET, "out": folder},
        by_hand="onnxsmith rename m.onnx x image -o out/model.onnx --no-verify",
        says=["out/model.onnx"],
    ),
    Case("save/failed", "onnxsmith rename m.onnx x image -o e.onnxtxt --no-verify", {"m.onnx": NET}, name="text"),
    Case("output/unknown-kind", "onnxsmith run m.onnx --random -o out.txt", {"m.onnx": TWO}),
    Case("output/not-an-image", "onnxsmith run m.onnx --random -o out.png", {"m.onnx": TWO}),
    Case(
        "output/not-an-image",
        "onnxsmith run m.onnx --input i.npz -o out.png",
        {"m.onnx": IMAGE, "i.npz": {"x": -np.ones((1, 3, 4, 4), np.float32)}},
        name="not finite",
    ),
    Call(
        "output/not-an-array",
        lambda: onnxsmith.run(from_text(LIST), random=True, output="o.npz"),
        lambda: onnxsmith.run(from_text(LIST), random=True),
        ["in Python"],
    ),
    Case(
        "input/unreadable",
        "onnxsmith run m.onnx --input i.npz",
        {"m.onnx": TWO, "i.npz": b"nothing"},
        changes={"i.npz": {"x": np.ones(2, np.float32), "w": np.ones(2, np.float32)}},
        says=["numpy.savez('i.npz'"],
    ),
    Case(
        "input/syntax",
        "onnxsmith run m.onnx --random --input 'x=float32(2)'",
        {"m.onnx": TWO},
        by_hand="onnxsmith run m.onnx --random --input 'x=float32[2]'",
        says=["write x=float32[2] in place of"],
    ),
    Case(
        "input/syntax",
        "onnxsmith run m.onnx --input inputs.npz",
        {"m.onnx": TWO, "input.npz": {"x": np.ones(2, np.float32), "w": np.ones(2, np.float32)}},
        by_hand="onnxsmith run m.onnx --input input.npz",
        says=["write input.npz in place of"],
        name="no file",
    ),
    Case(
        "input/syntax",
        "onnxsmith run m.onnx --random --input 'x=float32[batch]'",
        {"m.onnx": TWO},
        by_hand="onnxsmith run m.onnx --random --input 'x=float32[2]'",
        says=["a number in place of batch"],
        name="a size",
    ),
    Case(
        "input/syntax",
        "onnxsmith run m.onnx --random --input 'x=flaot32[2]'",
        {"m.onnx": TWO},
        by_hand="onnxsmith run m.onnx --random --input 'x=float32[2]'",
        says=["float32 in place of flaot32"],
        name="a dtype",
    ),
    Case(
        "input/syntax",
        "onnxsmith inspect m.onnx --costs --dim batch:4",
        {"m.onnx": NET},
        by_hand="onnxsmith inspect m.onnx --costs --dim batch=4",
        says=["write batch=4"],
        name="a dimension",
    ),
    Case("input/seed", "onnxsmith simplify m.onnx -o s.onnx --seed -1", {"m.onnx": TWO}),
    Case(
        "input/not-an-image-port",
        "onnxsmith run m.onnx --random --input x=p.png",
        {"m.onnx": TWO, "p.png": photo},
        changes={"p.npy": lambda path: np.save(path, np.ones(2, np.float32))},
        by_hand="onnxsmith run m.onnx --random --input x=p.npy",
        says=["numpy.save('p.npy', array)", "x=p.npy"],
    ),
    Case(
        "input/twice",
        "onnxsmith run m.onnx --random --input 'x=float32[2]' --input 'x=float32[2]'",
        {"m.onnx": TWO},
        by_hand="onnxsmith run m.onnx --random --input 'x=float32[2]'",
        says=["leave one of them out"],
    ),
    Call(
        "input/unnamed",
        lambda: onnxsmith.run(from_text(TWO), [np.ones(2, np.float32)] * 2),
        lambda: onnxsmith.run(from_text(TWO), {"x": np.ones(2, np.float32), "w": np.ones(2, np.float32)}),
        ['inputs={"x": array, "w": array}'],
    ),
    Case(
        "input/incomplete",
        "onnxsmith compare m.onnx m.onnx --input i.npz",
        {
            "m.onnx": TWO,
            "i.npz": {"x": np.ones(2, np.float32)},
            "FILE.npy": lambda path: np.save(path, np.ones(2, np.float32)),
        },
        nth=1,
    ),
]
BFLOAT = """
<ir_version: 10, opset_import: ["": 21]>
net (bfloat16[2] x) => (bfloat16[2] y) <bfloat16[2] w = {1, 2}> { y = Add(x, w) }
"""


def lost() -> object:
    """A model whose weights were removed."""
    model = from_text(NET)
    model.graph.initializers["bias"].const_value = None
    return model


def inspected(model: object, folder: str) -> None:
    onnxsmith.inspect(model, weights=f"{folder}/w.npz")  # type: ignore[arg-type]


JOINED = [
    Case(
        "merge/versions",
        "onnxsmith merge m.onnx h.onnx --wire z=features -o b.onnx --no-verify",
        {
            "m.onnx": NET.replace('["": 21', '["": 21, "ai.onnx.ml": 3'),
            "h.onnx": HEAD.replace('["": 21', '["": 21, "ai.onnx.ml": 4'),
        },
        changes={"h.onnx": HEAD.replace('["": 21', '["": 21, "ai.onnx.ml": 3')},
        says=["the same version"],
    ),
    Case(
        "merge/no-port",
        "onnxsmith merge m.onnx h.onnx --wire z:features -o b.onnx --no-verify",
        {"m.onnx": NET, "h.onnx": HEAD},
        by_hand="onnxsmith merge m.onnx h.onnx --wire z=features -o b.onnx --no-verify",
        says=["write z=features"],
    ),
    Case(
        "merge/no-port",
        "onnxsmith merge m.onnx h.onnx --wire zz=features -o b.onnx --no-verify",
        {"m.onnx": NET, "h.onnx": HEAD},
        by_hand="onnxsmith merge m.onnx h.onnx --wire z=features -o b.onnx --no-verify",
        says=["'z'"],
        name="no output",
    ),
    Case(
        "merge/two-wires",
        "onnxsmith merge m.onnx h.onnx --wire z=features --wire y=features -o b.onnx --no-verify",
        {"m.onnx": NET, "h.onnx": HEAD},
        by_hand="onnxsmith merge m.onnx h.onnx --wire z=features -o b.onnx --no-verify",
        says=["keep one of them: --wire z=features"],
    ),
    Case("merge/no-joint", "onnxsmith merge m.onnx h.onnx -o b.onnx --no-verify", {"m.onnx": NET, "h.onnx": HEAD}),
    Case(
        "merge/no-joint",
        "onnxsmith merge m.onnx h.onnx --siblings --wire z=features -o b.onnx --no-verify",
        {"m.onnx": NET, "h.onnx": HEAD},
        by_hand="onnxsmith merge m.onnx h.onnx --wire z=features -o b.onnx --no-verify",
        says=["leave --siblings out"],
        name="both",
    ),
    Case(
        "merge/types",
        "onnxsmith merge m.onnx h.onnx --wire z=features -o b.onnx --no-verify",
        {"m.onnx": NET, "h.onnx": HEAD.replace("float[", "float16[")},
        changes={"h.onnx": HEAD},
        says=["merge what `onnxsmith edit m.onnx fit.toml -o fitting.onnx` makes", 'op = "Cast"\nafter = "z"'],
    ),
    Case(
        "merge/types",
        "onnxsmith merge m.onnx h.onnx --siblings -o b.onnx --no-verify",
        {"m.onnx": NET, "h.onnx": HEAD.replace("features", "x").replace(",4", ",3")},
        name="siblings",
    ),
    Case(
        "merge/functions",
        "onnxsmith merge m.onnx h.onnx -o b.onnx --no-verify",
        {"m.onnx": GATE, "h.onnx": GATE.replace("Sigmoid", "Tanh")},
        by_hand="onnxsmith merge inlined.onnx h.onnx -o b.onnx --no-verify",
        changes={"inlined.onnx": GATE.split("<domain")[0].replace("own.Gate", "Sigmoid")},
        says=["`onnxsmith inline", "-o inlined.onnx`"],
    ),
    Case("split/how", "onnxsmith split m.onnx -o pieces --no-verify", {"m.onnx": NET}),
    Case("split/how", "onnxsmith split m.onnx -o pieces --into 1 --no-verify", {"m.onnx": NET}, name="one"),
    Case(
        "split/folder", "onnxsmith split m.onnx --at c -o pieces --no-verify", {"m.onnx": NET, "pieces/old.txt": "old"}
    ),
    Case(
        "split/one-piece",
        "onnxsmith split m.onnx --at x -o pieces --no-verify",
        {"m.onnx": NET},
        by_hand="onnxsmith split m.onnx --at a -o pieces --no-verify",
        says=["write a or c"],
    ),
]
SHOWN = [
    Case("inspect/weights-dtype", "onnxsmith inspect m.onnx --weights w.npz", {"m.onnx": BFLOAT}),
    Case(
        "inspect/program-target",
        "onnxsmith inspect m.onnx --onnx n.onnx",
        {"m.onnx": NET, "n.onnx": NET},
        by_hand="onnxsmith inspect n.onnx",
        says=["--onnx n.onnx"],
    ),
    Call(
        "inspect/weights-missing",
        lambda: inspected(lost(), "."),
        lambda: inspected(from_text(NET), "."),
        ["give the path of the .onnx file"],
    ),
    Case(
        "view/no-figures",
        "onnxsmith view m.onnx -o v.html --with r.json",
        {"m.onnx": NET, "r.json": plain},
        changes={"r.json": checked},
        says=["`onnxsmith explain view/no-figures`"],
    ),
    Case(
        "inspect/unknown-name",
        "onnxsmith inspect m.onnx produkt",
        {"m.onnx": NET},
        by_hand="onnxsmith inspect m.onnx product",
        says=["product"],
    ),
    Case(
        "inspect/unknown-dim",
        "onnxsmith inspect m.onnx --costs --dim n=4",
        {"m.onnx": NET},
        by_hand="onnxsmith inspect m.onnx --costs --dim batch=4",
        says=["batch"],
    ),
    Case(
        "inspect/misfit-dim",
        "onnxsmith inspect m.onnx --costs --dim k=5",
        {"m.onnx": WEIGHTED},
    ),
    Case(
        "inspect/no-program",
        "onnxsmith inspect m.onnx --program",
        {"m.onnx": NET},
        by_hand="onnxsmith inspect m.onnx --nodes",
        says=["--program --onnx m.onnx"],
    ),
    Case(
        "diff/unknown-part",
        "onnxsmith diff m.onnx m.onnx --ignore name",
        {"m.onnx": NET},
        by_hand="onnxsmith diff m.onnx m.onnx --ignore names",
        says=["names"],
    ),
    Case("op/unknown-operator", "onnxsmith op relu", by_hand="onnxsmith op Relu", says=["Relu"]),
    Case(
        "op/unknown-opset",
        "onnxsmith op Gelu --opset 17",
        by_hand="onnxsmith op Gelu --opset 20",
        says=["--opset from 20"],
    ),
    Case(
        "explain/unknown-id",
        "onnxsmith explain model/emty",
        by_hand="onnxsmith explain model/empty",
        says=["model/empty"],
    ),
    Case(
        "explain/nothing-given",
        "onnxsmith explain ''",
        by_hand="onnxsmith explain all",
        says=["`onnxsmith explain all`"],
    ),
    Case(
        "explain/unknown-message",
        "onnxsmith explain 'it broke'",
        by_hand="onnxsmith explain model/empty",
        says=["whole traceback"],
    ),
    Case(
        "view/report",
        "onnxsmith view m.onnx -o v.html --with r.json",
        {"m.onnx": NET},
        changes={"r.json": checked},
        says=["--json > r.json"],
    ),
    Case(
        "report/unreadable",
        "onnxsmith view m.onnx -o v.html --with n.onnx",
        {"m.onnx": NET, "n.onnx": NET},
        by_hand="onnxsmith view m.onnx n.onnx -o v.html",
        says=["to show a second model, leave --with out"],
    ),
    Case(
        "view/no-module",
        "onnxsmith view m.onnx -o v.svg --module layer1",
        {"m.onnx": NET},
        by_hand="onnxsmith view m.onnx -o v.svg",
        says=["leave --module out"],
    ),
    Case("report/not-written", "onnxsmith inspect m.onnx --html out/r.html", {"m.onnx": NET}),
]
PROFILES = [
    Case(
        "profile/unknown-name",
        "onnxsmith check m.onnx --target profile:p.toml",
        {"m.onnx": NET, "p.toml": BOARD.replace("Relu", "ReLU")},
        changes={"p.toml": BOARD},
        says=['write "Relu"'],
    ),
    Case(
        "profile/invalid",
        "onnxsmith check m.onnx --target profile:p.toml",
        {"m.onnx": NET, "p.toml": BOARD.replace("title", "version").replace('unlisted = "refused"', "")},
        changes={"p.toml": BOARD},
        says=['title = "My board" and unlisted = "refused"'],
    ),
    Case(
        "profile/unreadable",
        "onnxsmith check m.onnx --target profile:onnxruntim",
        {"m.onnx": NET},
        says=["write onnxruntime"],
        by_hand="onnxsmith check m.onnx --target onnxruntime",
        name="built in",
    ),
    Case(
        "target/unknown",
        "onnxsmith check m.onnx --target onnxruntim",
        {"m.onnx": NET},
        by_hand="onnxsmith check m.onnx --target onnxruntime",
        says=["write onnxruntime in place of"],
    ),
    Case(
        "profile/unknown",
        "onnxsmith check m.onnx --target onnxruntime@9.9",
        {"m.onnx": NET},
        says=["write onnxruntime@1."],
        by_hand="onnxsmith check m.onnx --target onnxruntime@1.22",
    ),
    Case(
        "profile/unreadable",
        "onnxsmith check m.onnx --target profile:p.toml",
        {"m.onnx": NET, "p.toml": "a: b"},
        changes={"p.toml": BOARD},
        says=["title ="],
    ),
    Case(
        "profile/unknown-key",
        "onnxsmith check m.onnx --target profile:p.toml",
        {"m.onnx": NET, "p.toml": BOARD.replace("max_rank", "max_ranks")},
        changes={"p.toml": BOARD},
        says=["write max_rank instead of max_ranks"],
    ),
]

CASES = [*FILES, *JOINED, *SHOWN, *PROFILES]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
