"""A mistake that onnx's checker does not find."""

import numpy as np

import onnxsmith

try:
    with onnxsmith.build("wrong.onnx") as g:
        x = g.input("x", "float32", ["batch", 16])
        g.output("y", g.LayerNormalization(x, np.ones(8, np.float32)))
except onnxsmith.OnnxsmithError as error:
    print(error)
