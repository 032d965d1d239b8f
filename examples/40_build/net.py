"""A residual network of convolutions, written by hand."""

import numpy as np

import onnxsmith

rng = np.random.default_rng(0)


def weight(*shape: int) -> np.ndarray:
    return (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


with onnxsmith.build("net.onnx", opset=21) as g:
    x = g.input("x", "float32", ["batch", 3, 32, 32])
    with g.scope("stem"):
        y = g.Relu(g.Conv(x, weight(8, 3, 3, 3), pads=[1, 1, 1, 1]))
    for index in range(2):
        with g.scope(f"block{index}"):
            y = g.Relu(
                g.Conv(g.Relu(g.Conv(y, weight(8, 8, 3, 3), pads=[1] * 4)), weight(8, 8, 3, 3), pads=[1] * 4) + y
            )
    y = g.ReduceMean(y, axes=[2, 3], keepdims=0) @ weight(8, 10)
    g.output("scores", g.Softmax(y))
print(g.result.report.headline)
print(y.shape, y.dtype)
