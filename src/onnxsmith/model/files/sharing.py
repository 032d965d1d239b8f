"""Large weights in one data file, which a model and the copies that are made of it refer to.

A model whose weights stand in its own file has them in memory, and each piece of it that is run would be written with
them. From a data file they are mapped, by every process that reads them, and a piece is written without.
"""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from onnxsmith.model.files import external
from onnxsmith.model.files.save import disk_problems
from onnxsmith.model.graph import copying, walk

LARGE = 2**24
"""Bytes of weights that are worth a file: one message is put together in memory, thrice."""


def held(model: ir.Model) -> int:
    """Bytes of the initializers that are in memory."""
    return sum(one.nbytes for one in walk.initializer_tensors(model) if not isinstance(one, ir.ExternalTensor))


def share_weights(model: ir.Model, data: Path) -> None:
    """Makes `model` refer to the file `data`, which is written, where it holds large weights in memory; the file has to
    be there as long as the model and its copies are used. A copy that was made before keeps its own.

    Raises:
        OnnxsmithError: `save/failed` when the disk is full or refuses.
    """
    if held(model) < LARGE:
        return
    with disk_problems(data):
        external.move_out(model, data)
    copying.own_values(model, up_to=LARGE)
