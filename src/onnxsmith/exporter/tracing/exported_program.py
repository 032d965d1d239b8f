"""Reads a program of torch.export as a module with its example inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from onnxsmith.base import user_files
from onnxsmith.base.problem import problem
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.tracing.torch_logging import quiet


def read(path: Path) -> ExportedProgram:
    """Reads the program in a `.pt2` file.

    Raises:
        OnnxsmithError: `compare/program` if the file holds no readable program.
    """
    try:
        with quiet(), user_files.opened(path) as file:
            return torch.export.load(file)
    except Exception as error:
        raise problem(
            "compare/program",
            "the file is not a readable program of torch.export",
            where=str(path),
            why=f"{type(error).__name__}: {error}"[:300],
            fix=f"write it with torch.export.save(torch.export.export(module, args), {str(path)!r}) and this version "
            f"of torch, {torch.__version__}",
        ) from error


def as_model(exported: ExportedProgram) -> TorchModel:
    """Makes the program a module with its example inputs.

    Raises:
        OnnxsmithError: `compare/program` if the program has no example inputs.
    """
    if exported.example_inputs is None:
        raise problem(
            "compare/program",
            "the program has no example inputs",
            why="onnxsmith reads the structure of the inputs from the example inputs, but these were stripped or "
            "never saved",
            fix="export it again with torch.export.export(module, args), which keeps args as the example inputs",
        )
    args, kwargs = exported.example_inputs
    return TorchModel(exported.module(), tuple(args), dict(kwargs))


def results(exported: ExportedProgram) -> Any:
    """Returns the program's results for its example inputs, as fake tensors (shapes and dtypes without values)."""
    nodes = {node.name: node for node in exported.graph.nodes}
    leaves = [
        nodes[leaf].meta["val"] if isinstance(leaf, str) and leaf in nodes else leaf
        for leaf in exported.graph_signature.user_outputs
    ]
    return pytree.tree_unflatten(leaves, exported.call_spec.out_spec)
