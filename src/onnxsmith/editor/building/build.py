"""Defines `build`, which makes a model from Python calls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onnxsmith.base.settings import Save
from onnxsmith.editor.building.builder import Builder


def build(
    output: str | Path | None = None,
    *,
    opset: int = 21,
    imports: Mapping[str, int] | None = None,
    name: str | None = None,
    verify: bool = True,
    save: Save = Save(),
) -> Builder:
    """Builds a model in a `with` block, and writes it to `output` when the block ends.

        with onnxsmith.build("model.onnx") as g:
            x = g.input("x", "float32", ["batch", 3])
            g.output("y", g.Relu(x) * 2 + 1)

    Every operator of the opset is a method. Each call infers dtype and shape and refuses operands that do not fit, at
    the line of the call. When the block ends, the model is checked and run once on generated inputs, on the first
    runtime that can run it. Only then the model is written. `g.model` is the model, `g.result` the result with its
    report. An error in the block leaves the file at `output` as it was.

    `opset` is the version of ONNX's own operators, `imports` has the versions of other domains (default: the newest).
    `name` is the name of the graph. Without `verify`, the model is checked but not run.

    Raises:
        OnnxsmithError: `build/…` at the line that does not fit, `save/…` when the model cannot be written.
    """
    return Builder(output, opset=opset, imports=imports or {}, name=name, verify=verify, save=save)
