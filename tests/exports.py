"""Exports in tests: compared with their module once, or at the inputs that the test chooses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch.utils import _pytree as pytree

from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.exporter import strategy_run
from onnxsmith.exporter.levels import AtLevels
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification.explore import Plan, Run
from onnxsmith.verification.verify import Evidence


@contextmanager
def compared_once() -> Iterator[None]:
    """Compares exports with their module once: on the example inputs, at one optimisation level, without planted
    faults. The fixture of the same name does so for a test, this for a fixture of a module."""

    def compared(self: AtLevels, plan: Plan, runs: list[Run]) -> Verification:
        chosen, options = runtimes.parse(self.name)
        with chosen.preparer() as preparer:
            session = preparer.prepare(self.candidate, options)
            return self._verified(session, replace(plan, generate=False), Evidence(), runs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AtLevels, "compared", compared)
        patch.setattr(strategy_run, "_refuse_single_size", lambda *_: None)
        yield


def assert_follows(
    model: ir.Model | Path, module: Any, *inputs: tuple[torch.Tensor, ...], rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Runs module and graph on each of the inputs and holds the results to each other.

    `inputs` are tuples of tensors, in the order of the arguments and of the graph's inputs.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    source = str(model) if isinstance(model, Path) else ir.to_proto(model).SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    for given in inputs:
        with torch.no_grad():
            wanted = pytree.tree_leaves(module(*given))
        found = session.run(None, dict(zip(names, (one.numpy() for one in given), strict=True)))
        sizes = str([tuple(one.shape) for one in given])
        for ours, theirs in zip(found, wanted, strict=True):
            expected = theirs.numpy() if isinstance(theirs, torch.Tensor) else np.asarray(theirs, ours.dtype)
            assert ours.dtype == expected.dtype, sizes
            np.testing.assert_allclose(ours, expected, rtol=rtol, atol=atol, err_msg=sizes)
