"""The model files that a report is about, with their hashes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataFile:
    """A file with weights of a model. `covered` is how many of its bytes the hash covers: a large file is hashed in
    pieces."""

    name: str
    bytes: int
    sha256: str
    covered: int


@dataclass(frozen=True)
class ModelFile:
    """A model file as it was read or written: `role` is `read` or `written`. `sha256` is of all its bytes, without its
    data files."""

    path: str
    role: str
    bytes: int
    sha256: str
    data: tuple[DataFile, ...] = ()

    def same_graph(self, other: ModelFile) -> bool:
        """Whether the bytes of the model file are equal."""
        return self.sha256 == other.sha256

    def same_weights(self, other: ModelFile) -> bool:
        """Whether the data files are equal, as far as their hashes cover them."""
        return [(one.sha256, one.bytes) for one in self.data] == [(one.sha256, one.bytes) for one in other.data]
