"""Asks tract, Sonos' runtime in Rust for phones and small devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes import _call_limits
from onnxsmith.runtimes._child import Child
from onnxsmith.runtimes.base import Feeds, Preparer, Value
from onnxsmith.targets.judges._by_runtime import RuntimeJudge, RuntimeTarget
from onnxsmith.targets.judges.base import Answer, Judge, Refusal, refusal


class Tract(RuntimeTarget):
    """Asks tract on the CPU. Tract is asked about the unchanged file. Tract is also asked about the model without the
    declared shapes of intermediate tensors and with local functions inlined, as `runtimes/tract.py` prepares the
    model."""

    title = "tract (CPU)"
    runtime = "tract"

    @contextmanager
    def judging(self) -> Iterator[Judge]:
        with self._runtime.preparer(keep=1) as preparer:
            judge = _Judge(preparer)
            try:
                yield judge
            finally:
                judge.close()


class _Judge(RuntimeJudge):
    def __init__(self, preparer: Preparer) -> None:
        super().__init__(preparer)
        self._child: Child | None = None

    def prepares(self, model: ir.Model) -> str:
        ends = {value for graph in walk.graphs(model) for value in graph.outputs}
        inner = (value for node in walk.all_nodes(model) for value in node.outputs if value not in ends)
        done = ["without the declared shapes of intermediate tensors"] * any(value.shape is not None for value in inner)
        done += ["with local functions inlined"] * bool(model.functions)
        return " and ".join(done) or "with renamed dimensions"

    def unchanged(self, file: Path, feeds: Feeds | None = None) -> Answer | None:
        """Asks about the file with its own dimensions, then with the sizes of `feeds`."""
        values: dict[str, Value] = {
            name: value for name, value in (feeds or {}).items() if isinstance(value, np.ndarray)
        }
        symbols = self._refusal(file, values, sized=False)
        if symbols is None:
            return Answer(Stage.RAN)
        sized = self._refusal(file, values, sized=True)
        return Answer(Stage.RAN, symbols=symbols) if sized is None else Answer(Stage.NOT_TRIED, sized)

    def _refusal(self, file: Path, values: dict[str, Value], *, sized: bool) -> Refusal | None:
        weight = sum(tensor.nbytes for tensor in walk.initializer_tensors(load(file)))
        request = {"do": "unchanged", "path": str(file.absolute()), "sized": sized}
        request["memory"] = _call_limits.memory(None, model=weight)
        try:
            self._started().ask(request, values, time_limit=_call_limits.seconds(None, model=weight))
        except OnnxsmithError as error:
            if error.problem.id in ("runtime/died", "runtime/timeout", "runtime/memory"):
                self.close()
            return refusal(error, Stage.NOT_TRIED)
        return None

    def _started(self) -> Child:
        if self._child is None:
            self._child = Child("onnxsmith.runtimes._tract_host", "main", what="tract")
        return self._child

    def close(self) -> None:
        """Ends the process that answers about files."""
        if self._child is not None:
            self._child.close()
            self._child = None
