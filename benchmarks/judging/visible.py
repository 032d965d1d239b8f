"""Whether a change can be seen at all, by no tolerance of onnxsmith: beside what one unit in the last place does.

Both models run without optimisations on feeds of the benchmark's own. The original runs again with every weight and
every float input moved by one unit in the last place, up or down by chance: what that moves is noise. A change is
`ratio` times the noise, the largest over outputs and elements' maxima; noise is at least one unit in the last place of
the output's largest value.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from judging.graphs import Open
from judging.running import Arrays, Runner, moved

CLEAR = {"float32": 100.0, "static": 100.0, "float16": 10.0, "dynamic": 10.0}
"""How many times the noise a change has to be to count, by form: in float16 1% of a weight is ten units in its last
place, and what is quantized while it runs goes to the next integer by one unit in the last place of float32."""
FAINT = 0.1
"""The part of that from which on a change is counted as faint."""
FEEDS = 20
DRAWS = 2
"""How often weights and inputs are moved."""
SECONDS = 4.0
"""After which no more feeds are run; three are run in any case."""


@dataclass(frozen=True)
class Seen:
    """`status` is visible, faint or invisible; `ratio` is infinite where integers, shapes or NaNs changed."""

    status: str
    ratio: float
    feeds: int


class Original:
    """A model with what it gives, and its noise, on the feeds. Raises what onnxruntime raises."""

    def __init__(self, model: onnx.ModelProto, feeds: Sequence[Arrays], seed: int = 0) -> None:
        self.model = model
        plain = Runner(model)
        rng = np.random.default_rng(seed)
        begin = time.monotonic()
        self.feeds: list[Arrays] = []
        self.outputs: list[Arrays] = []
        for feed in feeds:
            self.outputs.append(plain.run(feed))
            self.feeds.append(feed)
            if len(self.feeds) >= 3 and time.monotonic() - begin > SECONDS / 4:
                break
        self.noise: dict[str, Any] = {}
        for _ in range(DRAWS):
            other = Runner(jittered(model, rng))
            for feed, wanted in zip(self.feeds, self.outputs, strict=True):
                got = other.run({name: moved(value, rng) for name, value in feed.items()})
                self._add_noise(wanted, got)

    def _add_noise(self, wanted: Arrays, got: Arrays) -> None:
        for name, array in wanted.items():
            found = _distance(array, got[name])
            floor = _last_place(array)
            known = self.noise.get(name, 0.0)
            self.noise[name] = max(known, floor, found if np.isfinite(found) else 0.0)
            if array.dtype.kind not in "f" and found:
                self.noise[name] = np.inf

    def seen(self, candidate: onnx.ModelProto, clear: float) -> Seen:
        """How far the candidate's outputs are from the model's, in units of noise."""
        runner = Runner(candidate)
        ratio = 0.0
        for feed, wanted in zip(self.feeds, self.outputs, strict=True):
            ratio = max(ratio, self.ratio(wanted, runner.run(feed)))
        status = "visible" if ratio >= clear else "faint" if ratio >= FAINT * clear else "invisible"
        return Seen(status, ratio, len(self.feeds))

    def ratio(self, wanted: Arrays, got: Arrays) -> float:
        """How many times the noise the second is away from the first, the largest over outputs."""
        return max((self._ratio(name, array, got.get(name)) for name, array in wanted.items()), default=0.0)

    def _ratio(self, name: str, wanted: Any, got: Any) -> float:
        if got is None or got.shape != wanted.shape or got.dtype != wanted.dtype:
            return np.inf
        found = _distance(wanted, got)
        return found / self.noise[name] if found and self.noise[name] else 0.0


def _distance(wanted: Any, got: Any) -> float:
    """The largest difference of two arrays; infinite where one has NaN or infinity and the other has not."""
    if wanted.shape != got.shape:
        return np.inf
    if not wanted.size:
        return 0.0
    if wanted.dtype.kind != "f":
        return 0.0 if np.array_equal(wanted, got) else np.inf
    with np.errstate(all="ignore"):
        a, b = wanted.astype(np.float64), got.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        difference = np.where(same, 0.0, np.abs(a - b))
    return float(np.nan_to_num(difference, nan=np.inf, posinf=np.inf).max())


def _last_place(array: Any) -> float:
    if array.dtype.kind != "f" or not array.size:
        return 1.0
    finite = array[np.isfinite(array)]
    largest = float(np.abs(finite).max()) if finite.size else 1.0
    return largest * float(np.finfo(array.dtype).eps) or float(np.finfo(array.dtype).tiny)


def jittered(model: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    """A copy with every float weight moved by one unit in the last place; of scalars and pairs none."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    opened = Open(copy)
    for name, tensor in opened.constants.items():
        if tensor.data_type in (1, 10, 11) and int(np.prod(tensor.dims)) > 2:
            opened.set(name, moved(opened.array(name), rng))
    return copy


def example_runs(model: onnx.ModelProto, example: Mapping[str, Any]) -> float:
    """Processor seconds that one run of the example takes. Raises what onnxruntime raises."""
    runner = Runner(model)
    runner.run(example)
    begin = time.process_time()
    runner.run(example)
    return time.process_time() - begin
