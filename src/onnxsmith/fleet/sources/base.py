"""The base class of sources: what a model of a plan can be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Model:
    """A model of a plan.

    `argument` is what the first step gets as MODEL, relative to the folder of the plan. `is_file`: it is an ONNX file
    already, so it is not exported. `options` are words that an export needs. `files` are the files whose bytes make the
    model; `stamp` stands for bytes that are not on this machine. `address` is an fsspec address to fetch first.
    """

    name: str
    argument: str
    is_file: bool
    options: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    stamp: str = ""
    address: str = ""


class Source(ABC):
    """One kind of source. `rank` says in which order the kinds are asked."""

    rank: int

    @abstractmethod
    def takes(self, text: str, folder: Path) -> bool:
        """Whether the text is a source of this kind. `folder` is the folder of the plan."""

    @abstractmethod
    def models(self, text: str, folder: Path) -> Sequence[Model]:
        """Returns the models that the text names, none if there are none.

        Raises:
            OnnxsmithError: the source cannot be read.
        """
