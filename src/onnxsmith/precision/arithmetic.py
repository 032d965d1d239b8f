"""onnxruntime's quantisation of weights and activations, in a process of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnx_ir as ir

from onnxsmith.model.graph import walk
from onnxsmith.precision.blocks import Array, Blocks, joined
from onnxsmith.problem import OnnxsmithError
from onnxsmith.runtimes import _bounds
from onnxsmith.runtimes._child import Child
from onnxsmith.runtimes.base import on_disk

_COPIES = 6
"""Copies of the weights that the quantiser holds at once. A choice: it copies the model, and each weight in float32."""

_ELEMENTS = 2**24
"""Elements of a matrix that are quantised at once. A choice: k-quant holds some twenty copies of them."""
_SLOWNESS = 10
"""How much longer k-quant takes than the bound for a runtime. Measured: a microsecond an element."""


class Arithmetic:
    """Quantises one model again and again. A model that it returns may refer to files, which the next call removes, and
    `close` in the end."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._folder = tempfile.TemporaryDirectory(prefix="onnxsmith-", ignore_cleanup_errors=True)
        self._child: Child | None = None
        self._number = 0
        self._forms: dict[Callable[[ir.Model], ir.Model] | None, ir.Model] = {}
        self._blocks: dict[tuple[ir.Value, bool, int, int, bool], Blocks] = {}
        self._weight = sum(tensor.nbytes for tensor in walk.initializer_tensors(model))

    def quantised(
        self, do: str, exclude: Iterable[str], of: Callable[[ir.Model], ir.Model] | None = None, **options: Any
    ) -> ir.Model:
        """The model quantised by the function `do` of `_arithmetic_host.py`, without the nodes in `exclude`. `of` makes
        the form of the model that is quantised.

        Raises:
            OnnxsmithError: `quantize/refused` with the quantiser's message; `runtime/died` and the like.
        """
        self._number += 1
        shutil.rmtree(Path(self._folder.name) / str(self._number - 1), ignore_errors=True)
        out = Path(self._folder.name) / str(self._number) / "model.onnx"
        out.parent.mkdir()
        request: dict[str, Any] = {"do": do, "out": str(out), "exclude": sorted(exclude), "options": options,
                                   "memory": _bounds.memory(None, model=_COPIES * self._weight)}  # fmt: skip
        if of not in self._forms:
            self._forms[of] = of(self._model) if of is not None else self._model
        with on_disk(self._forms[of], refer=False) as (path, _):
            request["path"] = str(path.absolute())
            try:
                self._started().ask(request, {}, time_limit=_bounds.seconds(None, model=_COPIES * self._weight))
            except OnnxsmithError:
                self._stop()
                raise
        made = ir.load(out)
        made.graph.sort()  # the quantiser's own order ignores what branches read from outside
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
        """The float32 `matrix` [rows, columns] that a value of the model holds, `by_columns` or not, in blocks of its
        columns. With the `moments` of its inputs, the errors of its elements make up for each other. Each is computed
        once.

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
        nbytes = _COPIES * sum(array.nbytes for array in given.values())
        request = {"do": "blocks", "options": options, "memory": _bounds.memory(None, model=nbytes)}
        try:
            limit = _bounds.seconds(None, model=_SLOWNESS * nbytes)
            found = self._started().ask(request, dict(given), time_limit=limit)[1]
        except OnnxsmithError:
            self._stop()
            raise
        zeros = np.asarray(found["zeros"]) if "zeros" in found else None
        data, scales = np.asarray(found["data"]), np.asarray(found["scales"])
        return Blocks(matrix.shape[0], options["bits"], data, scales, zeros)

    def _started(self) -> Child:
        if self._child is None:
            self._child = Child("onnxsmith.precision._arithmetic_host", "main", what="onnxruntime's quantiser")
        return self._child

    def _stop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        """Ends the process and removes the files."""
        self._stop()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
