"""The model files that a report is about, with their hashes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataFile:
    """A data file with weights of a model. The hash covers `covered` of its bytes: only parts of a large file are
    hashed."""

    name: str
    bytes: int
    sha256: str
    covered: int


@dataclass(frozen=True)
class ModelFile:
    """A model file as it was read or written: `role` is `read` or `written`. `sha256` covers all its bytes, but not its
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
