"""A fix with a path or a name that has a space is pasted as it is printed: each is one word of the command."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.fixes.harness import Case, helps, parameters

NET = '<ir_version: 10, opset_import: ["": 20]> g (float[n,3] x) => (float[n,3] y) { y = Relu(x) }'
QUIET = "--no-verify"


def odd(path: Path) -> None:
    """A model whose input, output and dimension have spaces in their names."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch size", 3]) for name in ("x in", "y out")]
    graph = helper.make_graph([helper.make_node("Relu", ["x in"], ["y out"])], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


CASES = [
    Case(
        "input/unknown-dim",
        "onnxsmith run 'a b.onnx' --random --dim 'batch sise=2'",
        {"a b.onnx": odd},
        by_hand="onnxsmith run 'a b.onnx' --random --dim 'batch size'=2",
        says=["--dim 'batch size'=2"],
    ),
    Case("bench/unsized", "onnxsmith bench 'a b.onnx' --seconds 0.1", {"a b.onnx": odd}),
    Case(
        "input/size-range",
        "onnxsmith run 'a b.onnx' --random --dim 'batch size=5..3'",
        {"a b.onnx": odd},
        by_hand="onnxsmith run 'a b.onnx' --random --dim 'batch size'=3..5",
        says=["--dim 'batch size'=3..5"],
    ),
    Case(
        "edit/step-argument",
        f"onnxsmith set-dim 'a b.onnx' 'x in:0=n' -o 'c d.onnx' {QUIET}",
        {"a b.onnx": odd},
        by_hand=f"onnxsmith rename 'a b.onnx' 'batch size' n --kind dim -o 'c d.onnx' {QUIET}",
        says=["onnxsmith rename 'a b.onnx' 'batch size' n --kind dim -o"],
    ),
    Case(
        "bundle/dim-range",
        "onnxsmith bundle 'a b.onnx' -o out --for python --dim 'batch sise=1:2:4'",
        {"a b.onnx": odd},
        by_hand="onnxsmith bundle 'a b.onnx' -o out --for python --dim 'batch size'=1:2:4",
        says=["--dim 'batch size'=1:2:4"],
    ),
    Case(
        "inspect/program-target",
        "onnxsmith inspect 'a b.onnx' --onnx 'c d.onnx'",
        {"a b.onnx": NET},
        by_hand="onnxsmith inspect 'a b.onnx'",
        says=["--onnx 'c d.onnx'"],
    ),
    Case(
        "save/needed",
        f"onnxsmith simplify 'a b.onnx' -o 'a b.onnx' --record 'a b.onnx' {QUIET}",
        {"a b.onnx": NET},
        by_hand=f"onnxsmith simplify 'a b.onnx' -o 'a b_2.onnx' {QUIET}",
        says=["'a b_2.onnx'"],
    ),
    Case(
        "report/unknown-form",
        "onnxsmith inspect 'a b.onnx' --report 'c d.txt'",
        {"a b.onnx": NET},
        by_hand="onnxsmith inspect 'a b.onnx' --report 'c d.md'",
        says=["'c d.md'"],
    ),
    Case(
        "record/patch-file",
        f"onnxsmith rename 'a b.onnx' y z -o 'c d.onnx' --record 'c d.toml' {QUIET}",
        {"a b.onnx": NET},
        by_hand=f"onnxsmith rename 'a b.onnx' y z -o 'c d.onnx' --record 'c d.json' {QUIET}",
        says=["--record 'c d.json'", "--write-patch 'c d.toml'"],
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_it_is_pasted(one: Case, tmp_path: Path) -> None:
    helps(one, tmp_path)
