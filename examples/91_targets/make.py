"""Makes the front end of a speech model: a spectrogram by STFT."""

from __future__ import annotations

import numpy as np

import onnxsmith

with onnxsmith.build("spectrogram.onnx", opset=18) as g:
    sound = g.input("sound", "float32", ["batch", 1600])
    window = np.hanning(256).astype(np.float32)
    parts = g.STFT(sound, np.int64(128), window)
    power = g.ReduceSum(parts * parts, np.array([3]), keepdims=0)
    g.output("power", g.Log(power + np.float32(1e-3)))
