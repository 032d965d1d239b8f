"""A model of 3.2 GB whose weights lie in a second file: 48 times Transpose, MatMul, Relu over 4096 x 4096 floats.

    python benchmarks/models/large.py FOLDER [--layers 48]

Weights are random and no two are equal, so that nothing is gained by storing equal ones once. They are written one at a
time, which takes 64 MiB of memory.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDTH = 4096
LAYERS = 48
DATA = "large.onnx.data"


def weight(name: str, offset: int) -> onnx.TensorProto:
    """A WIDTH x WIDTH float32 tensor at that offset of the data file."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", DATA), ("offset", offset), ("length", WIDTH * WIDTH * 4)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def make(folder: Path, layers: int = LAYERS) -> Path:
    """Writes FOLDER/large.onnx and its data. Exits when the disk has less than three times the room."""
    size = layers * WIDTH * WIDTH * 4
    if shutil.disk_usage(folder).free < 3 * size:
        sys.exit(f"{folder} has no room for three times {size / 1e9:.1f} GB")
    random = np.random.default_rng(0)
    nodes, weights = [], []
    value = "x"
    with (folder / DATA).open("wb") as data:
        for layer in range(layers):
            weights.append(weight(f"w{layer}", data.tell()))
            data.write((random.standard_normal((WIDTH, WIDTH), dtype=np.float32) / WIDTH**0.5).tobytes())
            target = f"y{layer}"
            nodes.append(helper.make_node("Transpose", [f"w{layer}"], [f"t{layer}"], perm=[1, 0]))
            nodes.append(helper.make_node("MatMul", [value, f"t{layer}"], [f"m{layer}"]))
            nodes.append(helper.make_node("Relu", [f"m{layer}"], [target]))
            value = target
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["n", WIDTH])],
        weights,
    )
    path = folder / "large.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=LAYERS)
    given = parser.parse_args()
    print(make(given.folder, given.layers))
