"""A network with a local function, called twice."""

import onnxsmith

with onnxsmith.build("functions.onnx", opset=21) as g:
    swish = g.function("my.layers::Swish", lambda x, *, beta: x * g.Sigmoid(x * beta))
    x = g.input("x", "float32", ["batch", 8])
    g.output("y", swish(swish(x, beta=1.0), beta=1.5))
