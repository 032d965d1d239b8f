"""Enlarges by several factors with one file, and compares each with PyTorch."""

import numpy as np
import torch
from model import build

import onnxsmith

module, _ = build()
x = torch.rand(1, 1, 20, 30)
for factor in (2.0, 2.5, 3.0, 4.0):
    expected = module(x, torch.tensor(factor)).detach().numpy()
    found = onnxsmith.run("srcnn.onnx", {"x": x.numpy(), "factor": np.array(factor, np.float32)}).outputs["output"]
    print(f"x{factor}: {found.shape}, equal to PyTorch: {np.abs(found - expected).max() < 2e-6}")
