"""Fixes of slips: a name that is nearly right, two words in the wrong order, an axis that has no name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import helper

from tests.fixes.harness import Case, helps, parameters

NET = """
<ir_version: 8, opset_import: ["": 17]>
net (float[batch,3,8,8] image) => (float[batch,2,8,8] y) <float[2,3,1,1] w = {1, 2, 3, 4, 5, 6}> {
    [conv] c = Conv(image, w)  [relu] y = Relu(c)
}
"""
TAIL = """
<ir_version: 8, opset_import: ["": 17]>
tail (float[batch,2,8,8] features) => (float[batch,2,8,8] scores) { [end] scores = Sigmoid(features) }
"""


def misspelt(read: str) -> Callable[[Path], None]:
    """A model whose first node reads a tensor of this name; another node makes `relu_ouput`."""

    def write(path: Path) -> None:
        x, y = (helper.make_tensor_value_info(name, 1, [2, 4]) for name in "xy")
        nodes = [helper.make_node("Add", [read, "x"], ["y"]), helper.make_node("Relu", ["x"], ["relu_ouput"])]
        graph = helper.make_graph(nodes, "net", [x], [y])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)

    return write


FILES = {"m.onnx": NET}
CASES = [
    Case(
        "simplify/unknown-rule",
        "onnxsmith simplify m.onnx -o s.onnx --skip fuse/conv-bn",
        FILES,
        by_hand="onnxsmith simplify m.onnx -o s.onnx --skip fuse/conv-batchnorm",
        says=["write fuse/conv-batchnorm;"],
    ),
    Case(
        "pattern/text",
        "onnxsmith replace m.onnx 'Relu(x)' 'LeakyRelu(x, alpha=0.1)' --changes -o r.onnx",
        FILES,
        by_hand="onnxsmith replace m.onnx 'Relu(x)' 'LeakyRelu<alpha=0.1>(x)' --changes -o r.onnx",
        says=["LeakyRelu<alpha=0.1>(x)"],
    ),
    Case(
        "pattern/text",
        "onnxsmith replace m.onnx \"Clip(x, '', 6)\" 'Relu(x)' --changes -o r.onnx",
        {
            "m.onnx": '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) <float six = {6}> {\n'
            'y = Clip(x, "", six) }'
        },
        by_hand="onnxsmith replace m.onnx 'Clip(x, , 6)' 'Relu(x)' --changes -o r.onnx",
        says=["leave the place of the operand empty: Clip(x, , 6)"],
        name="left out",
    ),
    Case(
        "edit/no-match",
        "onnxsmith set-dim m.onnx height=16 -o d.onnx",
        FILES,
        by_hand="onnxsmith set-dim m.onnx image:2=height -o d.onnx",
        says=['to make it dynamic, write "image:1=height"', "image:2 (8)"],
    ),
    Case(
        "build/type",
        "onnxsmith cast m.onnx float8e4m3fn -o c.onnx --no-verify",
        FILES,
        goes_on=False,
        says=["onnxsmith opset m.onnx 19"],
    ),
    Case(
        "merge/no-port",
        "onnxsmith merge m.onnx tail.onnx --wire features=y -o both.onnx",
        {"m.onnx": NET, "tail.onnx": TAIL},
        by_hand="onnxsmith merge m.onnx tail.onnx --wire y=features -o both.onnx",
        says=["write --wire y=features"],
    ),
    Case(
        "edit/empty-part",
        "onnxsmith extract m.onnx --from c --to image -o part.onnx",
        FILES,
        by_hand="onnxsmith extract m.onnx --from c --to y -o part.onnx",
        says=["end the part at a tensor behind it: y"],
    ),
    Case(
        "bundle/unknown-task",
        "onnxsmith bundle m.onnx -o b --for python --task classification",
        FILES,
        by_hand="onnxsmith bundle m.onnx -o b --for python",
        says=["--task image-classification; or --task text-classification"],
    ),
    Case(
        "bundle/dim-range",
        "onnxsmith bundle m.onnx -o b --for python --dim batch=1:8",
        FILES,
        by_hand="onnxsmith bundle m.onnx -o b --for python --dim batch=1:2:8",
        says=["--dim batch=1:2:8"],
    ),
    Case(
        "model/undefined-input",
        "onnxsmith simplify m.onnx -o s.onnx",
        {"m.onnx": misspelt("relu_out")},
        changes={"m.onnx": misspelt("relu_ouput")},
        says=["write 'relu_ouput' where the file is made"],
    ),
    Case(
        "model/not-found",
        "onnxsmith diff m.onnx m2",
        {"m.onnx": NET, "m2.onnx": NET},
        by_hand="onnxsmith diff m.onnx m2.onnx",
        says=["'m2.onnx', which exists"],
    ),
]


@pytest.mark.parametrize("case", parameters(CASES))
def test_the_fix_helps(case: Case, tmp_path: Path) -> None:
    helps(case, tmp_path)
