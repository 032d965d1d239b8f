"""Exports the layer from Python, and compares the file with the product by hand."""

import numpy as np
import torch
from torch import nn

import onnxsmith

module = nn.Linear(4, 3, bias=False)
x = torch.rand(1, 1, 1, 4)
result = onnxsmith.export(module, (x,), output="linear.onnx", input_names=["x"], output_names=["y"], opset=17)
print(result.report.headline)

y = onnxsmith.run("linear.onnx", {"x": x.numpy()}).outputs["y"]
np.testing.assert_allclose(y, x.numpy() @ module.weight.detach().numpy().T, rtol=1e-5)
print("y equals x times the transposed weight:", y.shape)
