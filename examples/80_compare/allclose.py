"""The comparison that many scripts make: one input, and a tolerance that somebody chose."""

import numpy as np

import onnxsmith

x = np.random.default_rng(1).normal(size=(1, 32)).astype(np.float32)
outputs = [onnxsmith.run(path, {"x": x}).outputs["y"] for path in ("net.onnx", "weight.onnx")]
print("np.allclose:", np.allclose(*outputs, rtol=1e-3, atol=1e-5))
