"""What a runtime is: prepare a model once, run it on feeds, let go of it.

Members of this room are found by their files. A helper module starts with an underscore.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy.typing as npt

from onnxsmith import rooms
from onnxsmith.problem import OnnxsmithError, Problem, problem

if TYPE_CHECKING:  # the child processes of runtimes import this module and never touch a graph
    import onnx_ir as ir

    from onnxsmith.model.signature import Signature
from onnxsmith.model.versions import newest

Array = npt.NDArray[Any]
Value = Array | list[Any] | None
"""A tensor, a sequence of values, or an absent optional."""
Feeds = Mapping[str, Value]
Outputs = dict[str, Value]


class Program(ABC):
    """Something that runs but is no ONNX model, a torch module say; only the runtime made for it prepares it."""

    signature: Signature


Source: TypeAlias = "Path | ir.Model | Program"
"""A model on disk, in memory, or a program."""


@dataclass(frozen=True)
class Options:
    """How to run. A runtime refuses what it does not have rather than doing something else.

    `provider` is the execution provider in short (`cpu`, `cuda`, `tensorrt`); `optimization` is `all`, `extended`,
    `basic` or `disable`; `threads` 0 leaves the choice to the runtime; `time_limit` is seconds for one call of a
    runtime that lives in a process of its own, None for no limit.
    """

    provider: str = "cpu"
    optimization: str = "all"
    threads: int = 0
    time_limit: float | None = None


class Session(ABC):
    """A prepared model. A context manager; closing twice is fine."""

    signature: Signature
    provider: str
    """The execution provider that really runs it, as the runtime calls it."""

    @abstractmethod
    def run(self, feeds: Feeds) -> Outputs:
        """Every output by name, in the model's order, as copies that the caller owns.

        Raises:
            OnnxsmithError: `run/…` when the feeds do not fit the signature, `runtime/…` when the runtime fails.
        """

    def close(self) -> None:  # noqa: B027 — most sessions hold nothing to let go of
        """Lets go of what the session holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Preparer(ABC):
    """Prepares one model after another, for whoever has many; a session ends when the next one is prepared.

    A context manager. Where the runtime lives in a process of its own, that process is started once, and again after a
    crash or a timeout.
    """

    @abstractmethod
    def prepare(self, source: Source, options: Options | None = None, *, interface: Signature | None = None) -> Session:
        """A session for the model; `interface` is its signature, where the caller knows it already.

        Raises:
            OnnxsmithError: as `Runtime.prepare`.
        """

    @abstractmethod
    def close(self) -> None:
        """Lets go of the last session, and of the process."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _OneByOne(Preparer):
    """Every model anew, as `Runtime.prepare` does it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._session: Session | None = None

    def prepare(self, source: Source, options: Options | None = None, *, interface: Signature | None = None) -> Session:
        self.close()
        self._session = self._runtime.prepare(source, options)
        return self._session

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


class Runtime(ABC):
    """A way to run models; stateless."""

    title: ClassVar[str]
    package: ClassVar[str | None] = None
    """The distribution that it needs, None when it needs nothing."""
    extra: ClassVar[str | None] = None
    """The extra of onnxsmith that installs it."""

    @abstractmethod
    def missing(self) -> Problem | None:
        """Why it cannot be used here, or None."""

    def newest_opset(self) -> int:
        """The newest version of ONNX's own operator set that it runs; at most the newest that onnx writes."""
        return newest().opset

    @abstractmethod
    def prepare(self, source: Source, options: Options | None = None) -> Session:
        """A session for the model.

        Raises:
            OnnxsmithError: `runtime/…` when the runtime is not installed or does not take the model.
        """

    def preparer(self) -> Preparer:
        """What prepares many models, one after another."""
        return _OneByOne(self)


def get(name: str) -> Runtime:
    """The runtime of that name, ready for use.

    Raises:
        OnnxsmithError: `runtime/unknown` for a name that no runtime has, `runtime/not-installed` when it is not here.
    """
    found = rooms.members("onnxsmith.runtimes", Runtime)
    if name not in found:
        raise problem(
            "runtime/unknown",
            f"there is no runtime {name!r}",
            fix=f"one of: {', '.join(found)}",
        )
    runtime = found[name]
    missing = runtime.missing()
    if missing is not None:
        raise OnnxsmithError(missing)
    return runtime


def default() -> str:
    """The name of the runtime to use when nobody asked for one: onnxruntime, else the reference evaluator."""
    found = rooms.members("onnxsmith.runtimes", Runtime)
    return "onnxruntime" if found["onnxruntime"].missing() is None else "reference"


@contextmanager
def on_disk(source: Path | ir.Model) -> Iterator[Path]:
    """A path of a binary file for the model: its own, or a temporary one that is gone when the block ends."""
    from onnxsmith.model.load import TEXT_SUFFIXES, load
    from onnxsmith.model.save import save

    if isinstance(source, Path) and source.suffix not in TEXT_SUFFIXES:
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="onnxsmith-") as folder:
        path = Path(folder) / "model.onnx"
        save(load(source), path)
        yield path


def onnx_source(source: Source) -> Path | ir.Model:
    """The source, when it is an ONNX model.

    Raises:
        OnnxsmithError: `runtime/wrong-source` for a program.
    """
    if isinstance(source, Program):
        raise problem(
            "runtime/wrong-source",
            f"this runtime runs ONNX models, not a {type(source).__name__}",
            fix="export it first, or use the runtime that is made for it",
        )
    return source
