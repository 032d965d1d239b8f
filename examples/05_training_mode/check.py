"""Exports the network from Python; its mode is what it was."""

from model import build

import onnxsmith

module, args = build()
onnxsmith.export(module, args, output="net.onnx")
print("still in training mode:", all(part.training for part in module.modules()))
