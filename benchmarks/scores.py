"""Scores that prove nothing, and sound ones: which of them `quantize` refuses.

    python benchmarks/scores.py [--folder .bench-scores] [--only CASE …]

A case is KIND-NETWORK. Six networks are trained here in seconds, on data that scikit-learn ships. Of the twenty kinds
of scores ten are blind: no change of the model moves them by more than the budget. A case is good if a blind score is
refused by name and nothing is written, or if a sound one is taken. Prints a line for each case.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring.cases import run

FOLDER = Path(__file__).parent.parent / ".bench-scores"
NETWORKS = ("classifier", "detector", "regressor", "autoencoder", "recurrent", "encoder")
STEPS = 400
TEST = 200
NAMED = ("quantize/blind-score", "quantize/metric", "quantize/labels")
"""The problems that name a score."""


def _data(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, what a network learns, and a class of each sample."""
    from sklearn.datasets import load_diabetes, load_digits

    order = np.random.default_rng(0).permutation
    if name == "regressor":
        found = load_diabetes()
        at = order(len(found.target))
        wanted = np.stack([found.target / 100, found.data[:, 2] * 20], axis=1)
        inputs, classes = found.data * 20, (found.target > np.median(found.target)).astype(int)
    else:
        found = load_digits()
        at = order(len(found.target))
        inputs, classes = found.data / 16, found.target
        wanted = {"detector": (classes > 4)[:, None], "autoencoder": inputs}.get(name, classes)
        classes = (classes > 4).astype(int) if name == "detector" else classes
        inputs = inputs.reshape(-1, 8, 8) if name == "recurrent" else inputs
    return inputs[at].astype(np.float32), np.asarray(wanted)[at], classes[at]


def _network(name: str) -> Any:
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.head = nn.GRU(8, 48, batch_first=True), nn.Linear(48, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.gru(x)[0][:, -1])

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 16)), nn.Linear(16, 10)

        def forward(self, x: Any) -> Any:
            inner = self.body(x)
            return self.head(inner), inner

    def plain(*widths: int) -> nn.Sequential:
        layers = [one for a, b in itertools.pairwise(widths) for one in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    makers: dict[str, Callable[[], Any]] = {
        "classifier": lambda: plain(64, 96, 96, 10),
        "detector": lambda: nn.Sequential(plain(64, 96, 96, 1), nn.Sigmoid()),
        "regressor": lambda: plain(10, 96, 96, 2),
        "autoencoder": lambda: plain(64, 96, 16, 96, 64),
        "recurrent": Recurrent,
        "encoder": Encoder,
    }
    return makers[name]()


def trained(name: str, folder: Path) -> Path:
    """Trains a network on all but the test samples, and exports it with an open batch, unless its file is there."""
    import torch
    from torch.nn import functional

    path = folder / f"{name}.onnx"
    if path.exists():
        return path
    folder.mkdir(exist_ok=True)
    torch.manual_seed(0)
    inputs, wanted, _ = _data(name)
    x, is_class = torch.from_numpy(inputs[TEST:]), wanted.ndim == 1
    goal = torch.from_numpy(wanted[TEST:]).to(torch.int64 if is_class else torch.float32)
    network = _network(name)
    optimizer = torch.optim.Adam(network.parameters(), 3e-3, weight_decay=1e-4)
    for _ in range(STEPS):
        chosen = torch.randint(len(x), (64,))
        found = network(x[chosen])
        found = found[0] if isinstance(found, tuple) else found
        loss = functional.cross_entropy(found, goal[chosen]) if is_class else functional.mse_loss(found, goal[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dims = ({0: torch.export.Dim("n")},)
    torch.onnx.export(network.eval(), (x[:2],), path, dynamo=True, dynamic_shapes=dims, external_data=False)
    return path


def share_right(predictions: list[Any], labels: list[Any]) -> float:
    """The share of right classes; a single number is a probability."""
    classes = [np.argmax(one) if np.size(one) > 1 else int(np.ravel(one)[0] > 0.5) for one in predictions]
    return float(np.mean([a == int(b) for a, b in zip(classes, labels, strict=True)]))


def r2(predictions: list[Any], labels: list[Any]) -> float:
    """The coefficient of determination."""
    a, b = (np.stack([np.ravel(one) for one in found]).astype(float) for found in (predictions, labels))
    return float(1 - ((a - b) ** 2).sum() / ((b - b.mean(axis=0)) ** 2).sum())


def squares(predictions: list[Any], labels: list[Any]) -> float:
    """The mean squared error, where a class is the number 1 at its place."""
    total = []
    for a, b in zip(predictions, labels, strict=True):
        found = np.ravel(a).astype(float)
        wanted = np.eye(found.size)[int(b)] if np.ndim(b) == 0 and found.size > 1 else np.ravel(b)
        if np.ndim(b) == 0 and found.size > 1:
            found = np.exp(found - found.max()) / np.exp(found - found.max()).sum()
        total.append(float(np.mean((found - wanted) ** 2)))
    return float(np.mean(total))


squares.better = "lower"  # type: ignore[attr-defined]


def _first(outputs: dict[str, Any]) -> np.ndarray:
    return np.asarray(next(iter(outputs.values())))


class Data:
    """The test samples of a network, and its natural metric with the labels for that."""

    def __init__(self, name: str, path: Path) -> None:
        import onnx
        import onnxruntime as ort

        graph = onnx.load(path).graph
        self.key, self.output = graph.input[0].name, graph.output[-1].name
        inputs, wanted, classes = _data(name)
        self.x, self.classes = inputs[:TEST], classes[:TEST]
        self.is_class = name in ("classifier", "detector", "recurrent", "encoder")
        self.labels = self.classes if self.is_class else wanted[:TEST].astype(np.float32)
        self.metric = share_right if self.is_class else r2
        found = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {self.key: self.x})[0]
        self.largest = float(np.abs(found).max())

    def pairs(self, labels: Any = None, chosen: Any = slice(None)) -> list[Any]:
        """Samples with labels."""
        given = self.labels if labels is None else labels
        return [({self.key: x[None]}, label) for x, label in zip(self.x[chosen], given[chosen], strict=True)]

    def alone(self, chosen: Any = slice(None)) -> list[Any]:
        """Samples without labels."""
        return [{self.key: x[None]} for x in self.x[chosen]]


def one_class(data: Data) -> dict[str, Any]:
    """Samples of one class."""
    chosen = data.classes == data.classes[0]
    return {"data": data.pairs(data.classes, chosen), "metric": threshold if not data.is_class else share_right}


def threshold(predictions: list[Any], labels: list[Any]) -> float:
    """The share of predictions that are above -1000 where the class is 0 or more."""
    return float(np.mean([(np.mean(a) > -1000) == (b >= 0) for a, b in zip(predictions, labels, strict=True)]))


def _shuffled(data: Data) -> np.ndarray:
    return data.labels[np.random.default_rng(1).permutation(TEST)]


BLIND: dict[str, Callable[[Data], dict[str, Any]]] = {
    "constant": lambda data: {"data": data.pairs(), "metric": lambda *_: 0.75},
    "oneclass": one_class,
    "oneelement": lambda data: {
        "data": data.alone(), "metric": "cosine", "decode": lambda outputs: np.abs(_first(outputs)).reshape(-1)[:1] + 1
    },
    "capped": lambda data: {"data": data.alone(), "metric": "psnr", "budget": "1%"},
    "wrongunit": lambda data: {"data": data.alone(), "budget": 5},
    "shuffled": lambda data: {"data": data.pairs(_shuffled(data)), "metric": data.metric},
    "equal": lambda data: {"data": data.alone([0] * 60)},
    "nan": lambda data: {"data": data.pairs(), "metric": lambda *_: float("nan")},
    "saturated": lambda data: {
        "data": data.pairs(), "metric": lambda found, _: float(np.mean([np.isfinite(one).all() for one in found]))
    },
    "unread": lambda data: {
        "data": data.pairs(), "metric": lambda _, labels: float(np.mean([np.mean(b) for b in labels]))
    },
}  # fmt: skip
"""Scores that no damage moves."""

SOUND: dict[str, Callable[[Data], dict[str, Any]]] = {
    "natural": lambda data: {"data": data.pairs(), "metric": data.metric, "budget": "3%"},
    "agreement": lambda data: {"data": data.alone()},
    "outputs": lambda data: {"data": data.alone(), "budget": f"2%,{data.output}=3%"},
    "decibels": lambda data: {
        "data": data.alone(), "metric": "psnr", "budget": 80, "decode": lambda outputs: _first(outputs) / data.largest
    },
    "generated": lambda _: {},
    "lower": lambda data: {"data": data.pairs(), "metric": squares, "budget": "10%"},
    "few": lambda data: {"data": data.pairs(chosen=slice(0, 64)), "metric": data.metric, "budget": "8%"},
    "decoded": lambda data: {"data": data.pairs(), "metric": data.metric, "decode": _first, "budget": "3%"},
    "apart": lambda data: {
        "data": data.alone(slice(40, None)), "calibration": data.alone(slice(0, 40)), "samples": 120, "budget": 0.02
    },
    "magnitude": lambda data: {
        "data": data.alone(),
        "metric": lambda found, labels: -float(
            np.mean([np.abs(np.subtract(a, b)).mean() for a, b in zip(found, labels, strict=True)])
        ),
        "decode": _first,
        "budget": 0.02,
    },
}  # fmt: skip
"""Scores that damage moves."""

CASES = tuple(f"{kind}-{name}" for kind in (*BLIND, *SOUND) for name in NETWORKS)


def one(case: str, folder: Path) -> str:
    """Quantises the network of a case to float16 with its score."""
    import onnxsmith
    from onnxsmith.base.problem import OnnxsmithError

    kind, name = case.split("-")
    path, out = trained(name, folder), folder / f"{case}.out.onnx"
    data = Data(name, path)
    request = (BLIND | SOUND)[kind](data)
    if callable(request.get("metric")):
        request.setdefault("decode", _first)  # of several outputs a metric gets a dictionary
    out.unlink(missing_ok=True)
    try:
        result = onnxsmith.quantize(path, out, to="float16", measure_time=False, **request)
        told = [one.id for one in result.report.problems]
        said = result.report.headline
    except OnnxsmithError as error:
        told, said = [error.problem.id], error.problem.what
    is_named = any(one in NAMED for one in told)
    good = (is_named and not out.exists()) if kind in BLIND else (not is_named and out.exists())
    return f"{'yes' if good else 'no '}  {', '.join(told) or 'written'}: {said[:150]}"


if __name__ == "__main__":
    run(__file__, __doc__, one, CASES, FOLDER, len(CASES), "scores are judged rightly: 60 blind, 60 sound")
