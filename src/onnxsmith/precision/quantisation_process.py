"""Quantises models by a library that runs in a process of its own."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.graph.files.save import INLINE_LIMIT
from onnxsmith.graph.structure import walk
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.neutral_names import Neutral, neutral
from onnxsmith.precision.scaled_blocks import Array, Blocks, joined
from onnxsmith.runtimes import _call_limits, _idle, _wire
from onnxsmith.runtimes._child import Child
from onnxsmith.runtimes.base import on_disk


@dataclass(frozen=True)
class Engine:
    """A library. `host` is the module that the process runs. `package` has to be installed; `extra` is the extra of
    onnxsmith that does so. `most` is the most bytes of weights in a model that the library takes, None for no limit."""

    host: str
    title: str
    package: str
    extra: str
    most: int | None = None
    runs_the_model: bool = False
    """Whether the library runs the model on samples."""

    def missing(self) -> Problem | None:
        """Returns a problem if the library is not installed, else None."""
        if find_spec(self.package) is not None:
            return None
        return Problem(
            "quantize/not-installed",
            f"{self.title} is not installed",
            fix=f'`pip install "onnxsmith[{self.extra}]"`; or try another --to',
        )

    def seconds(self, weight: int) -> float:
        """Returns the most seconds the library may take for a model with `weight` bytes of weights; 0 is no limit."""
        return _call_limits.patient() if self.runs_the_model else _call_limits.seconds(None, model=COPIES * weight)

    def memory(self, weight: int, sample: int) -> int:
        """Returns the most bytes of memory the library may take; 0 is no limit. `sample` is the size of the largest
        sample in bytes."""
        return _call_limits.memory(None, model=COPIES * weight, feeds=sample)


COPIES = 6
"""Copies of the weights that a library holds at once. A choice: libraries copy the model, and each weight in
float32."""

ONNXRUNTIME = Engine("onnxsmith.precision._arithmetic_host", "onnxruntime's quantiser", "onnxruntime", "cpu")
NNCF = Engine(
    "onnxsmith.precision._nncf_host",
    "NNCF",
    "nncf",
    "nncf",
    most=INLINE_LIMIT,  # it passes models on as one protobuf message
    runs_the_model=True,
)


_SAMPLE_BYTES = 2**30
"""Once the samples on disk exceed this many bytes, no more are written. A choice: 1 GiB, some 300 photographs."""

_ELEMENTS = 2**24
"""The most elements of a matrix quantised at once. A choice: k-quant holds some twenty copies of them."""
_SLOWNESS = 10
"""The factor on a runtime's time limit that k-quant needs. Measured: a microsecond an element."""


class Arithmetic:
    """Quantises a model as often as needed. A returned model may refer to files that the next call, or `close`,
    removes."""

    def __init__(self, model: ir.Model, engine: Engine = ONNXRUNTIME) -> None:
        self._model, self._engine = model, engine
        self._stack = ExitStack()
        self._folder: folders.OwnPath = self._stack.enter_context(folders.temporary())
        self._child: Child | None = None
        self._number = 0
        self._forms: dict[Callable[[ir.Model], ir.Model] | None, Neutral] = {}
        self._blocks: dict[tuple[ir.Value, bool, int, int, bool], Blocks] = {}
        self._weight = sum(tensor.nbytes for tensor in walk.initializer_tensors(model))
        self._samples: list[str] | None = None
        self._largest = 0

    def quantised(
        self, do: str, exclude: Iterable[str], of: Callable[[ir.Model], ir.Model] | None = None, **options: Any
    ) -> ir.Model:
        """Quantises the model by the function `do` of the engine's host, without the nodes in `exclude`. If `of` is
        given, the model that it returns is quantised instead. An engine that runs the model on samples gets it as it
        is; another gets other names of tensors.

        Raises:
            OnnxsmithError: `quantize/refused` with the quantiser's message; `quantize/too-large`; `runtime/died` and
                the like.
        """
        self._refuse_large()
        if of not in self._forms:
            given = of(self._model) if of is not None else self._model
            self._forms[of] = Neutral(given) if self._engine.runs_the_model else neutral(given)
        form = self._forms[of]
        if "ranges" in options:
            options["ranges"] = form.by_name(options["ranges"])
        self._number += 1
        shutil.rmtree(self._folder / str(self._number - 1), ignore_errors=True)
        out = self._folder / str(self._number) / "model.onnx"
        out.parent.mkdir()
        request: dict[str, Any] = {
            "do": do,
            "of": self._engine.title,
            "out": str(out),
            "exclude": sorted(exclude),
            "options": options,
            "memory": self._engine.memory(self._weight, self._largest),
        }
        with on_disk(form.model, refer=False) as (path, _):
            request["path"] = str(path.absolute())
            try:
                self._started().ask(request, {}, time_limit=self._engine.seconds(self._weight))
            except OnnxsmithError as error:
                self._stop()
                raise form.error(error) from error
        made = ir.load(out)
        form.restore(made)
        made.graph.sort()  # the quantiser's order of nodes ignores the outer values that branches read
        return made

    def blocks(
        self,
        value: ir.Value,
        matrix: Callable[[], Array],
        moments: Callable[[], Array | None],
        *,
        by_columns: bool,
        bits: int,
        block: int,
        symmetric: bool,
    ) -> Blocks:
        """Quantises the float32 `matrix` [rows, columns] that a value of the model holds in blocks of its columns;
        `by_columns` says that the value holds it transposed. With the `moments` of its inputs, GPTQ lets later rows
        compensate for the errors of earlier rows. Each matrix is computed once.

        Raises:
            OnnxsmithError: as `quantised`.
        """
        key = (value, by_columns, bits, block, symmetric)
        if key not in self._blocks:
            whole, known = matrix(), moments()
            width = max(1, _ELEMENTS // max(1, whole.shape[0]))
            options = {"bits": bits, "block": block, "symmetric": symmetric}
            parts = [self._part(whole[:, at : at + width], known, options) for at in range(0, whole.shape[1], width)]
            self._blocks[key] = joined(parts)
        return self._blocks[key]

    def _part(self, matrix: Array, moments: Array | None, options: dict[str, Any]) -> Blocks:
        given = {"matrix": np.ascontiguousarray(matrix)} | ({} if moments is None else {"moments": moments})
        nbytes = COPIES * sum(array.nbytes for array in given.values())
        request = {"do": "blocks", "options": options, "memory": _call_limits.memory(None, model=nbytes)}
        try:
            limit = _call_limits.seconds(None, model=_SLOWNESS * nbytes)
            found = self._started().ask(request, dict(given), time_limit=limit)[1]
        except OnnxsmithError:
            self._stop()
            raise
        zeros = np.asarray(found["zeros"]) if "zeros" in found else None
        data, scales = np.asarray(found["data"]), np.asarray(found["scales"])
        return Blocks(matrix.shape[0], options["bits"], data, scales, zeros)

    def samples(self, given: Iterable[Sample], most: int) -> list[str]:
        """Writes the first samples of `given`, at most `most`, to files, once, and returns the paths. An engine that
        runs the model reads one file at a time, so that its memory does not grow with their number."""
        if self._samples is None:
            self._samples, total = [], 0
            for number, sample in enumerate(itertools.islice(given, most)):
                path = self._folder / f"sample_{number}"
                with path.open("wb") as file:
                    _wire.send(file, _wire.encode({}, dict(sample.feeds)))
                self._samples.append(str(path))
                size = path.stat().st_size
                self._largest, total = max(self._largest, size), total + size
                if total > _SAMPLE_BYTES:
                    break
        return self._samples

    def _refuse_large(self) -> None:
        most = self._engine.most
        if most is not None and self._weight > most:
            raise problem(
                "quantize/too-large",
                f"the model is too large for {self._engine.title}",
                where=f"{self._weight:,} bytes of weights; the method accepts at most {most:,}",
                fix="try another --to: int8, int8-dynamic, int4",
            )

    def _started(self) -> Child:
        if self._child is None:
            self._child = _idle.started(self._engine.host, self._engine.title)
        return self._child

    def _stop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        """Leaves the process waiting for the next model, and removes the files."""
        if self._child is not None:
            _idle.retire(self._child, self._engine.host, [])
            self._child = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
