"""Defines a case: a model with the inputs on which it is tried."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.graph.files.save import staged
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes.base import Feeds, Value


@dataclass(frozen=True)
class Case:
    """One model, and values for its inputs. `feeds` lacks inputs without a known value."""

    model: ir.Model
    feeds: Feeds = field(default_factory=dict)

    @property
    def nodes(self) -> int:
        """The number of nodes, including those of bodies and functions, without `Constant`."""
        return walk.count_nodes(self.model)

    def key(self) -> bytes:
        """Returns a key that is equal for equal models with equal inputs. Weights in external data are identified by
        file and offset."""
        digest = hashlib.blake2b(ir.to_proto(self.model).SerializeToString(deterministic=True), digest_size=16)
        for name, value in sorted(self.feeds.items()):
            digest.update(name.encode())
            _digest(digest, value)
        return digest.digest()


def _digest(digest: Any, value: Value) -> None:
    if isinstance(value, list):
        digest.update(b"[")
        for item in value:
            _digest(digest, item)
        digest.update(b"]")
    elif value is None:
        digest.update(b"none")
    elif value.dtype.kind in "OUS":
        digest.update(repr((value.shape, value.tolist())).encode())
    else:
        digest.update(repr((value.dtype.name, value.shape)).encode())
        digest.update(np.ascontiguousarray(value).tobytes())


def fed(model: ir.Model, feeds: Mapping[str, Value]) -> Case:
    """Returns the case of a model with those `feeds` that are its inputs."""
    names = {value.name for value in model.graph.inputs}
    return Case(model, {name: value for name, value in feeds.items() if name in names})


@contextmanager
def written(model: ir.Model) -> Iterator[Path]:
    """Writes the model to a file in a folder of its own; both are deleted at the end. The file is not synced to
    disk."""
    with (
        folders.temporary() as folder,
        staged(folder / "model.onnx") as stage,
    ):
        stage.write(model)
        yield stage.path
