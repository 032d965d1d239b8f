"""Fixes of problems of comparing, of reducing, of measuring and of rooms."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.graph.files.text import from_text
from tests.fixes.harness import Call, Case, helps, parameters

HEAD = '<ir_version: 10, opset_import: ["": 20]> '
RELU = HEAD + "g (float[n,3] x) => (float[n,3] y) { a = Relu(x) y = Neg(a) }"
STATE = (
    HEAD
    + "g (float[b,3] x, float[b,3] left) => (float[b,3] y, float[b,3] right) { right = Add(x, left) y = Tanh(right) }"
)
UNKNOWN = HEAD + "g (float[n,3] x) => (float[n,3] y) { a = Relu(x) b = Relux(a) y = Neg(b) }"
M = {"m.onnx": RELU}
BENCH = "onnxsmith bench m.onnx --dim n=4 --seconds 0.05"
STEPS = {f"s{index}.npz": {"x": np.ones((1, 3), np.float32)} for index in range(2)}
STEP = "--input s0.npz --input s1.npz --only-given"
CHECK = """import sys
sys.exit(1 if b"Relux" in open(sys.argv[1], "rb").read() else 0)
"""
COMMAND = f"--command '{sys.executable} check.py {{model}}'"


def dumped(path: Path) -> None:
    from onnxsmith import dump

    dump(path.with_name("m.onnx"), path)


ONE = "import logging\nclass One(logging.Handler): pass\n"
TWO = "import logging\nclass First(logging.Handler): pass\nclass Second(logging.Handler): pass\n"


def room(modules: dict[str, str]) -> Callable[[], object]:
    """Reads the members of a package with these modules."""

    def read() -> object:
        with tempfile.TemporaryDirectory() as folder:
            name = f"room_of_{Path(folder).name}"
            package = Path(folder) / name
            package.mkdir()
            for module, text in {"__init__": "", **modules}.items():
                (package / f"{module}.py").write_text(text)
            sys.path.insert(0, folder)
            try:
                return rooms.classes(name, logging.Handler)
            finally:
                sys.path.remove(folder)

    return read


def reduced(failures: int | None) -> Callable[[], object]:
    """Reduces with a check that fails on the first `failures` tries; with None, on every try."""

    def reduce() -> object:
        tries: list[Path] = []

        def check(path: Path, _: object) -> bool:
            tries.append(path)
            return failures is None or len(tries) <= failures

        return onnxsmith.reduce(from_text(UNKNOWN), check=check)

    return reduce


GROWING = (
    HEAD
    + """g (float[b,n,2] x, int64[b,total] mask, float[b,past,2] past_0)
=> (float[b,n,2] y, float[b,total,2] present_0) <int64[1] one = {1}, int64[1] last = {2}> {
    present_0 = Concat<axis = 1>(past_0, x)
    f = Cast<to = 1>(mask)
    u = Unsqueeze(f, last)
    m = Mul(present_0, u)
    r = ReduceMean(m, one)
    y = Add(x, r)
}"""
)


def step(tokens: int, mask: int) -> dict[str, object]:
    return {"x": np.ones((1, tokens, 2), np.float32), "mask": np.ones((1, mask), np.int64)}


HEAD_ONLY = '<ir_version: 10, opset_import: ["": 21]> g (float[n,4] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }'

CASES = [
    Case(
        "compare/step",
        f"onnxsmith compare m.onnx m.onnx --steps 2 {STEP}",
        {"m.onnx": GROWING, "s0.npz": step(2, 2), "s1.npz": step(1, 2)},
        changes={"s1.npz": step(1, 3)},
        says=["a mask is as long as the past and the new tokens"],
    ),
    Call("reduce/flaky", reduced(1), reduced(None), ["remove it from the check"]),
    Case(
        "compare/number",
        f"onnxsmith compare m.onnx m.onnx --steps -1 --state left=right {STEP}",
        {"m.onnx": STATE, **STEPS},
        by_hand=f"onnxsmith compare m.onnx m.onnx --steps 2 --state left=right {STEP}",
        says=["a number from 1"],
    ),
    Case("compare/number", "onnxsmith compare m.onnx m.onnx --per-layer --min-paired 50", M, name="a share"),
    Case("compare/state", f"onnxsmith compare m.onnx m.onnx --steps 2 {STEP}", {"m.onnx": STATE, **STEPS}),
    Case(
        "compare/state",
        "onnxsmith compare m.onnx m.onnx --steps 2",
        {"m.onnx": HEAD_ONLY},
        by_hand="onnxsmith compare m.onnx m.onnx",
        says=["leave --steps out"],
        name="no state",
    ),
    Case(
        "compare/state",
        f"onnxsmith compare m.onnx m.onnx --steps 2 --state left=wrong {STEP}",
        {"m.onnx": STATE, **STEPS},
        by_hand=f"onnxsmith compare m.onnx m.onnx --steps 2 --state left=right {STEP}",
        says=["--state left=right"],
        name="a wrong name",
    ),
    Case(
        "compare/other-input",
        "onnxsmith compare v.safetensors m.onnx --input in.npz",
        {"m.onnx": RELU, "v.safetensors": dumped, "in.npz": {"x": np.ones((5, 3), np.float32)}},
        by_hand="onnxsmith compare v.safetensors m.onnx",
        says=["remove --input"],
    ),
    Case("reduce/no-output", "onnxsmith reduce u.onnx --check 'refuses onnxruntime'", {"u.onnx": UNKNOWN}),
    Case(
        "reduce/unknown-check",
        "onnxsmith reduce u.onnx -o small --check 'fails onnxruntime'",
        {"u.onnx": UNKNOWN},
        by_hand="onnxsmith reduce u.onnx -o small --check 'refuses onnxruntime'",
        says=["refuses RUNTIME"],
    ),
    Case("reduce/unknown-check", "onnxsmith reduce u.onnx -o small", {"u.onnx": UNKNOWN}, name="none"),
    Case(
        "reduce/command",
        "onnxsmith reduce u.onnx -o small --command '/no/python check.py {model}'",
        {"u.onnx": UNKNOWN, "check.py": CHECK},
        by_hand=f"onnxsmith reduce u.onnx -o small {COMMAND}",
        says=["give a program with its arguments"],
    ),
    Case(
        "reduce/does-not-fail",
        "onnxsmith reduce m.onnx -o small --check 'crashes onnxruntime'",
        {"m.onnx": UNKNOWN},
        by_hand="onnxsmith reduce m.onnx -o small --check 'refuses onnxruntime'",
        says=["choose another check"],
    ),
    Case(
        "reduce/folder-in-use",
        "onnxsmith reduce u.onnx -o small --check 'refuses onnxruntime'",
        {"u.onnx": UNKNOWN, "small/thesis.tex": "work"},
    ),
    Case(
        "reduce/time-limit",
        f"onnxsmith reduce u.onnx -o small {COMMAND} --time-limit 0.001",
        {"u.onnx": UNKNOWN, "check.py": CHECK},
    ),
    Case("bench/no-model", "onnxsmith bench", M, fill={"m.onnx": "m.onnx --dim n=4 --seconds 0.05"}, goes_on=False),
    Case("bench/unsized", "onnxsmith bench m.onnx --seconds 0.05", M),
    Case("bench/no-dimension", f"{BENCH} --dim batch=2", M, by_hand=BENCH, says=["n"]),
    Case(
        "bench/no-batch",
        "onnxsmith bench m.onnx --dim n=4 --seconds 0.05 --batch 1,2 --input in.npz",
        {**M, "in.npz": {"x": np.ones((4, 3), np.float32)}},
        by_hand="onnxsmith bench m.onnx --seconds 0.05 --batch 1,2",
        says=["leave --input out"],
    ),
    Case(
        "bench/no-profile",
        f"{BENCH} --subject reference --profile",
        M,
        by_hand=f"{BENCH} --subject onnxruntime --profile",
        says=["--subject onnxruntime --profile"],
    ),
    Case(
        "bench/no-threads",
        f"{BENCH} --subject reference --threads 1,2",
        M,
        by_hand=f"{BENCH} --subject onnxruntime --threads 1,2",
        says=["leave reference out of a measurement with --threads"],
    ),
    Case("bench/baseline", f"{BENCH} --against old.json", M, goes_on=False),
    Case(
        "bench/no-partner",
        f"{BENCH} --subject reference --against old.json",
        {**M, "old.json": lambda path: _saved(path)},
        by_hand=f"{BENCH} --subject onnxruntime --save new.json",
        says=["--subject onnxruntime; or save a new baseline with --save"],
    ),
    Call(
        "room/no-member",
        room({"one": ONE, "helper": "VALUE = 1"}),
        room({"one": ONE, "_helper": "VALUE = 1"}),
        ["with an underscore"],
    ),
    Call(
        "room/clash",
        room({"one": TWO, "two": TWO}),
        room({"one": TWO, "two": TWO.replace("Second", "Fourth").replace("First", "Third")}),
        ["rename one of them"],
    ),
]


def _saved(path: Path) -> None:
    from onnxsmith import bench

    bench(path.with_name("m.onnx"), sizes={"n": 4}, seconds=0.05, save=path)


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
