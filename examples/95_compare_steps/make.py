"""A small voice detector with a state, the same with a state that is cut off, and 40 chunks of sound."""

import numpy as np

import onnxsmith

rng = np.random.default_rng(0)
filters = rng.normal(size=(64, 32)).astype(np.float32) * 0.1
inner = [rng.normal(size=(1, 128, 32)).astype(np.float32) * 0.2 for _ in range(2)]
last = rng.normal(size=(32, 1)).astype(np.float32)


def write(path: str, *, limit: float | None = None) -> None:
    with onnxsmith.build(path, opset=20) as g:
        chunk = g.input("input", "float32", ["batch", 64])
        state = g.input("state", "float32", [2, "batch", 32])
        hidden, cell = g.Gather(state, [0], axis=0), g.Gather(state, [1], axis=0)
        if limit is not None:
            cell = g.Clip(cell, np.float32(-limit), np.float32(limit))
        features = g.Unsqueeze(g.Relu(chunk @ filters), [0])
        _, hidden, cell = g.LSTM(features, *inner, None, None, hidden, cell, hidden_size=32)
        g.output("output", g.Sigmoid(g.Squeeze(hidden, [0]) @ last))
        g.output("stateN", g.Concat(hidden, cell, axis=0))


write("voice.onnx")
write("cut.onnx", limit=0.8)
sound = rng.normal(size=(40, 1, 64)).astype(np.float32)
np.savez("chunks.npz", input=sound * np.linspace(0.1, 2, 40, dtype=np.float32)[:, None, None])
