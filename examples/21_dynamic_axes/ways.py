"""Dynamic axes in Python: names, a list of axes, and what is refused."""

from model import build

import onnxsmith

module, args = build()
for dynamic in ({"image": {0: "batch", 2: "height", 3: "width"}}, {"image": [0, 2, 3]}, {"image": 0}):
    try:
        result = onnxsmith.export(module, args, output="patches.onnx", dynamic=dynamic)
        print(result.report.headline)
    except onnxsmith.OnnxsmithError as error:
        print(error)
