"""A model with more than 2 GB of weights beside it: the page is made without reading them."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import onnx_ir as ir

from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.view import view
from tests.viewer.models import HEAD
from tests.viewer.test_view import scene_in

ROOT = Path(__file__).parents[2]
ELEMENTS = 550_000_000
"""Of float32: 2.2 GB, more than one file of protobuf can hold."""
MOST_MEMORY = 100
"""MB that may be added. Measured: 1; all weights are 2,200."""


def large(folder: Path) -> Path:
    """Writes a model whose weight is a file with a hole: it takes no space on the disk."""
    model = from_text(HEAD + "g (float[N] x) => (float[N] y) <float[1] w = {1}> { [scale] y = Mul(x, w) }")
    tensor = ir.ExternalTensor(
        "m.data", 0, 4 * ELEMENTS, ir.DataType.FLOAT, shape=ir.Shape([ELEMENTS]), name="w", base_dir=folder
    )
    weight = model.graph.initializers["w"]
    weight.const_value, weight.shape = tensor, tensor.shape
    (folder / "m.onnx").write_bytes(ir.to_proto(model).SerializeToString())
    with (folder / "m.data").open("wb") as data:
        data.truncate(4 * ELEMENTS)
    return folder / "m.onnx"


def most_memory() -> float:
    """The most memory of this process, mapped pages that were read included, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def show(path: str) -> None:
    """Prints by how many MB the view of a model makes the process grow; a small one loads the packages before."""
    view(from_text(HEAD + "g (float[N] x) => (float[N] y) { y = Relu(x) }"))
    before = most_memory()
    result = view(path)
    sys.stdout.write(f"{most_memory() - before}\n")
    (constant,) = scene_in(result.page)["models"][0]["constants"].values()
    assert (constant["bytes"], constant["figures"]) == (4 * ELEMENTS, None)
    assert "m.data" in constant["file"]
    assert any("no statistics of 1 weight (2.2 GB)" in note for note in result.report.notes), result.report.notes


def test_weights_of_over_2_gb_are_mapped_and_not_read(tmp_path: Path) -> None:
    path = large(tmp_path)
    assert path.with_name("m.data").stat().st_blocks * 512 < 1e6
    code = f"from {__name__} import show; show({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < MOST_MEMORY, done.stdout
