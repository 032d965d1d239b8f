"""Makes the page of a model in Python."""

import onnxsmith

page = onnxsmith.view("net.onnx")
print(page.report.headline)
