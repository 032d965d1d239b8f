"""What a model file says of itself: interface, nodes, bytes and digests; and where it runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import onnx_ir as ir

from onnxsmith._version import __version__
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import ModelFile
from onnxsmith.gate.baselines.digests import Digests, digests
from onnxsmith.gate.baselines.entry import Entry, StoredPort
from onnxsmith.graph.files.load import load
from onnxsmith.graph.model_identity import model_file
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Port, Signature, signature
from onnxsmith.runtimes import base as runtimes


@dataclass(frozen=True)
class Facts:
    """Holds a model with what its file says. `moved` are its digests with the inputs and outputs in the order of
    another model that has the same names."""

    model: ir.Model
    interface: Signature
    ports: dict[str, list[StoredPort]]
    nodes: dict[str, int]
    bytes: dict[str, int]
    file: str
    digests: Digests
    moved: Digests

    @property
    def stored_digests(self) -> dict[str, str]:
        """Returns the digests as an entry has them."""
        own = self.digests
        return {"file": self.file, "graph": own.graph, "weights": own.weights, "whole": own.whole}


def facts(file: Path, beside: Entry | None = None) -> Facts:
    """Reads a model file. `beside` is the entry that it will be compared with.

    Raises:
        OnnxsmithError: the errors of loading a model.
    """
    model = load(file)
    interface = signature(model)
    found = model_file(file, "read")
    if found is None:
        raise problem(
            "model/not-found", "the model cannot be read", where=str(file), fix="give the path of a model file"
        )
    names = (beside.names("inputs"), beside.names("outputs")) if beside is not None else ((), ())
    own, moved = digests(model, *names)
    return Facts(
        model,
        interface,
        {"inputs": _ports(interface.inputs), "outputs": _ports(interface.outputs)},
        dict(sorted(walk.histogram(model).items())),
        {"model": found.bytes, "data": sum(one.bytes for one in found.data)},
        _digest(found),
        own,
        moved,
    )


def _ports(ports: Sequence[Port]) -> list[StoredPort]:
    return [
        StoredPort(
            one.name,
            one.dtype,
            None if one.shape is None else list(one.shape),
            one.kind,
            one.default,
            one.keys,
            one.many,
        )
        for one in ports
    ]


def _digest(found: ModelFile) -> str:
    parts = [found.sha256, *(f"{one.bytes} {one.sha256}" for one in found.data)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest() if found.data else found.sha256


def versions(runtime: str) -> dict[str, str]:
    """Returns the versions that numbers depend on: those of onnxsmith, onnx, numpy and the runtime's package."""
    package = runtimes.parse(runtime)[0].package
    found = {"onnxsmith": __version__}
    for name in dict.fromkeys(["onnx", "numpy", *([package, f"{package}-gpu"] if package else [])]):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
