"""Feeds the network in four wrong ways, and prints what each error says."""

import numpy as np
import torch

import onnxsmith

for feeds in (
    {"image": np.zeros((2, 16), np.float32)},
    {"input": np.zeros((2, 16))},
    {"input": np.zeros((2, 8), np.float32)},
    {"input": torch.zeros(2, 16)},
):
    try:
        onnxsmith.run("net.onnx", feeds)
    except onnxsmith.OnnxsmithError as error:
        print(error)
