"""A program of torch.export as a model: what it runs, and the inputs that it was exported with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from onnxsmith.exporter.tracing.torch_logging import quiet
from onnxsmith.problem import problem
from onnxsmith.seams.torch import trees as pytree
from onnxsmith.sources.factory import TorchModel


def read(path: Path) -> ExportedProgram:
    """The program in a `.pt2` file.

    Raises:
        OnnxsmithError: `compare/program` when there is none.
    """
    try:
        with quiet():
            return torch.export.load(path)
    except Exception as error:
        raise problem(
            "compare/program",
            "this is no program of torch.export that can be read",
            where=str(path),
            why=f"{type(error).__name__}: {error}"[:300],
            fix="write it with torch.export.save(torch.export.export(module, args), path) and this version of torch",
        ) from error


def as_model(exported: ExportedProgram) -> TorchModel:
    """The program as a module with its example inputs.

    Raises:
        OnnxsmithError: `compare/program` when it came without example inputs.
    """
    if exported.example_inputs is None:
        raise problem(
            "compare/program",
            "the program holds no example inputs",
            why="it was made without, or they were stripped; what its inputs look like is read from them",
            fix="export it again with torch.export.export(module, args)",
        )
    args, kwargs = exported.example_inputs
    return TorchModel(exported.module(), tuple(args), dict(kwargs))


def results(exported: ExportedProgram) -> Any:
    """What the program gives for its example inputs, as its trace left it: tensors without values."""
    nodes = {node.name: node for node in exported.graph.nodes}
    leaves = [
        nodes[leaf].meta["val"] if isinstance(leaf, str) and leaf in nodes else leaf
        for leaf in exported.graph_signature.user_outputs
    ]
    return pytree.tree_unflatten(leaves, exported.call_spec.out_spec)
