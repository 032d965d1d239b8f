"""A small network, the same with one weight changed by a thousandth, and one with a wrong epsilon."""

import numpy as np

import onnxsmith


def write(path: str, *, factor: float = 1.0, epsilon: float = 1e-5) -> None:
    rng = np.random.default_rng(0)
    with onnxsmith.build(path, opset=20) as g:
        x = g.input("x", "float32", ["batch", 32])
        first = rng.normal(size=(32, 32)).astype(np.float32)
        first[3, 4] *= np.float32(factor)
        y = g.LayerNormalization(g.Relu(x @ first), rng.normal(size=32).astype(np.float32), epsilon=epsilon)
        g.output("y", g.Softmax(y @ rng.normal(size=(32, 8)).astype(np.float32)))


write("net.onnx")
write("weight.onnx", factor=1.001)
write("epsilon.onnx", epsilon=1e-3)
