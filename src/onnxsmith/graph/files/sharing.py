"""Moves large weights to one data file, which a model and its later copies share.

Inline weights are in memory, and would be written with every piece of the model that is run. Weights in a data file are
memory-mapped by every process that reads them, and a piece is written without them.
"""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from onnxsmith.graph.files import external
from onnxsmith.graph.files.save import disk_problems
from onnxsmith.graph.structure import model_copy, walk

LARGE = 2**24
"""Sets the bytes from which a weight is moved. A choice: serialising a message needs about three copies of it."""


def held(model: ir.Model) -> int:
    """Returns the bytes of all initializers that are in memory."""
    return sum(one.nbytes for one in walk.initializer_tensors(model) if not isinstance(one, ir.ExternalTensor))


def share_weights(model: ir.Model, data: Path) -> None:
    """If `model` has large weights in memory, writes them to the file `data` and makes the model refer to that file.
    The file must exist as long as the model and its later copies are used. Earlier copies keep their own weights.

    Raises:
        OnnxsmithError: `save/no-folder`; `save/failed` when the disk is full or refuses.
    """
    if held(model) < LARGE:
        return
    with disk_problems(data):
        external.move_out(model, data)
    model_copy.own_values(model, up_to=LARGE)
