"""The benchmark of declarations finds wrong ones, and says nothing of right ones."""

from __future__ import annotations

from pathlib import Path

import declarations
import pytest

from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

RIGHT = """
<ir_version: 10, opset_import: ["": 21]>
g (float[n,4] x) => (float[n,4] y, float[m,4] w) <float[n,4] a> { a = Neg(x) y = Relu(a) w = Concat<axis = 0>(y, y) }
"""


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("float[n,4] y", "float[n,5] y", "y: declared ['n', 5], is"),
        ("float[n,4] y", "float[1,4] y", "y: declared [1, 4], is"),
        ("float[m,4] w", "float[n,4] w", "w: declared ['n', 4], is"),
        ("float[m,4] w", "float[m] w", "w: declared ['m'], is"),
        ("float[m,4] w", "double[m,4] w", "w: declared double, is float"),
        ("<float[n,4] a>", "<float[n,3] a>", "a: declared ['n', 3], is"),
    ],
)
def test_a_wrong_declaration_is_found(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    path = tmp_path / "m.onnx"
    save(from_text(RIGHT), path)
    assert declarations.differences(path) == (6, [])
    save(from_text(RIGHT.replace(right, wrong)), path)
    (found,) = declarations.differences(path)[1]
    assert found.startswith(said)
