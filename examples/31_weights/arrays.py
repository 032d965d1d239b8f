"""Reads the weights of a model as numpy arrays, and saves them."""

import numpy as np

import onnxsmith

model = onnxsmith.load("net.onnx")
weights = {name: value.const_value.numpy() for name, value in model.graph.initializers.items()}
np.savez("weights.npz", **weights)
for name, array in weights.items():
    print(name, array.dtype, array.shape)
