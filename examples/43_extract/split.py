"""Splits a model into models of one node."""

import onnxsmith

model = onnxsmith.load("net.onnx")
for node in list(model.graph):
    read = [value.name for value in node.inputs if value is not None and not value.is_initializer()]
    with onnxsmith.edit("net.onnx", f"{node.name}.onnx") as m:
        m.extract(read, [value.name for value in node.outputs])
    print(m.result.report.headline)
