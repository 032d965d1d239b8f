"""Edits a model, and writes the steps to patch.toml."""

import onnxsmith

with onnxsmith.edit("net.onnxtxt", "edited.onnx", write_patch="patch.toml") as m:
    m.insert("Clip", after="c", operands=[0.0, 6.0], name="limit")
    m.constant("bias", [4.0, 3.0, 2.0, 1.0])
    m.rename("x", "image")
print(m.result.report.headline)
