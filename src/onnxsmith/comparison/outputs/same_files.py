"""Recognises two files with the same bytes, which compute the same without a run."""

from __future__ import annotations

import filecmp
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import walk
from onnxsmith.verification import random_draws

NOTHING_RUN = "the files are equal byte by byte, so neither file was run"


def same_files(reference: Any, candidate: Any) -> Verification | None:
    """Returns the result for two files with the same bytes. None if they have to be run: if they differ, if their
    weights are in further files, or if they draw random numbers.

    Raises:
        OnnxsmithError: the errors of loading the file.
    """
    files = [Path(one) for one in (reference, candidate) if isinstance(one, str | Path)]
    if len(files) < 2 or any(one.suffix != ".onnx" or not one.is_file() for one in files):
        return None
    if not filecmp.cmp(files[0], files[1], shallow=False):
        return None
    model = load(files[0])
    if random_draws.nodes(model) or any(isinstance(one, ir.ExternalTensor) for one in walk.tensors(model)):
        return None
    first, second = (one.name for one in files)
    return Verification(first, second, verified=True, equal=True, notes=(NOTHING_RUN,))
