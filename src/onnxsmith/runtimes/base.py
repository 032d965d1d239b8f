"""Defines runtimes: a runtime prepares a model once, and runs it on feeds.

Runtimes are found by their files. The name of a helper module starts with an underscore.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy.typing as npt

from onnxsmith.base import folders, rooms
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.words import in_place_of
from onnxsmith.runtimes import _call_limits
from onnxsmith.runtimes._timing import Timer, local

if TYPE_CHECKING:  # the child processes of runtimes import this module and never touch a graph
    import onnx_ir as ir

    from onnxsmith.graph.structure.signature import Signature

Array = npt.NDArray[Any]
_LEVELS = {"disable_all": "disable", "enable_basic": "basic", "enable_extended": "extended", "enable_all": "all"}
Value = Array | list[Any] | None
"""Holds a tensor, a sequence of values, or an absent optional."""
Feeds = Mapping[str, Value]
Outputs = dict[str, Value]


class Program(ABC):
    """Is a source that is not an ONNX model but can run, such as a torch module. Only the program's own runtime
    prepares it."""

    signature: Signature


Source: TypeAlias = "Path | ir.Model | Program"
"""Is a model on disk, a model in memory, or a program."""


@dataclass(frozen=True)
class Options:
    """Says how to run a model. A runtime refuses options that it does not have.

    `provider` is the short name of the execution provider (`cpu`, `cuda`, `tensorrt`); `optimization` is `all`,
    `extended`, `basic` or `disable`. If `threads` is 0, the runtime chooses the number of threads.

    With `in_order` nodes run in the order of the file, if the runtime has a choice. Tensors are then freed early if
    their readers closely follow their nodes.

    With `unsaturated` sums of 8-bit products do not saturate, if the runtime has a choice. A processor without VNNI
    adds two products of 8-bit integers in 16 bits.

    With `exact` everything is computed at least in float32. Without `exact` a runtime computes as it does by default:
    OpenVINO, for example, quantises the activations of a matrix product with narrow weights.

    With `repeated` the model runs many times at the same sizes. onnxruntime then plans the memory of a run, once for
    each size. For a model with 25,000 long-lived tensors, one such plan takes 7 s.

    `time_limit` (seconds) and `memory_limit` (bytes) are for one call of a runtime in its own process; 0 is no limit.
    None takes the environment variable (`ONNXSMITH_TIME_LIMIT`, `ONNXSMITH_MEMORY_LIMIT`), else a minute and 4 GiB, and
    more for a large model or input. Memory is limited for the provider `cpu` only, because the drivers of other devices
    reserve memory that they never use.
    """

    provider: str = "cpu"
    optimization: str = "all"
    threads: int = 0
    in_order: bool = False
    unsaturated: bool = False
    exact: bool = True
    repeated: bool = False
    time_limit: float | None = None
    memory_limit: int | None = None


def patient(options: Options | None = None) -> Options:
    """Returns options for a call that the user asked for, on the user's own inputs. Such a call may take ten minutes,
    unless `options` or the environment say otherwise."""
    options = options or Options()
    return options if options.time_limit is not None else replace(options, time_limit=_call_limits.patient())


class Session(ABC):
    """Runs a prepared model. A context manager; closing twice is allowed."""

    signature: Signature
    provider: str
    """Names the execution provider that really runs the model, in the runtime's own words."""
    is_built: bool = True
    """Whether the model is ready for all sizes that it allows. If the model is not ready, a run builds it for the sizes
    of the run's inputs."""

    @abstractmethod
    def run(self, feeds: Feeds) -> Outputs:
        """Runs the model, and returns every output by name, in the model's order, as copies that the caller owns.

        Raises:
            OnnxsmithError: `run/…` if the feeds do not fit the signature, `runtime/…` if the runtime fails.
        """

    def timer(self, feeds: Feeds) -> Timer:
        """Returns a timer of runs on these feeds. A runtime in its own process measures in that process, on inputs that
        are sent once; other runtimes measure `run`.

        Raises:
            OnnxsmithError: the errors of `run`.
        """
        return local(lambda: self.run(feeds), "around the whole call of the runtime, with its conversions")

    def at(self, level: str) -> Session:
        """Returns a session of the same model at another optimisation level (`Options.optimization`), in the same
        process and from the same file. The new session ends with this session. If the runtime has no such level,
        returns this session itself.

        Raises:
            OnnxsmithError: the errors of `Runtime.prepare`.
        """
        return self

    def close(self) -> None:  # noqa: B027 — most sessions hold no resources
        """Frees the session's resources."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Preparer(ABC):
    """Prepares one model after another. Keeps `keep` sessions (default 1): the oldest session ends when the next
    session is prepared.

    This is a context manager. If the runtime has its own process, the process is started once, and again after a crash
    or a timeout.
    """

    @abstractmethod
    def prepare(
        self,
        source: Source,
        options: Options | None = None,
        *,
        interface: Signature | None = None,
        read: ir.Model | None = None,
    ) -> Session:
        """Prepares the model, and returns a session for it. `interface` is its signature, and `read` the model in the
        file `source`, if the caller already has them.

        Raises:
            OnnxsmithError: the errors of `Runtime.prepare`.
        """

    def extended(
        self, file: Path, model: ir.Model, added: bytes, interface: Signature, options: Options | None = None
    ) -> Session | None:
        """Returns a session of the `model` in `file` with further inputs. `added` is a message that extends the file's
        if it follows the file's bytes; `interface` has the further inputs. Returns None if this preparer cannot extend
        the file.

        Raises:
            OnnxsmithError: the errors of `Runtime.prepare`.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Ends the sessions and the process."""

    def start(self) -> int | None:
        """Starts the runtime's own process, if it has one, and waits until its library is imported. Returns the process
        id."""
        return None

    def expect(self) -> None:  # noqa: B027 — some runtimes have no process of their own
        """Starts the runtime's own process, if it has one, but does not wait until the library is imported."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _OneByOne(Preparer):
    """Prepares every model with `Runtime.prepare`."""

    def __init__(self, runtime: Runtime, keep: int) -> None:
        self._runtime, self._keep = runtime, keep
        self._sessions: list[Session] = []

    def prepare(
        self,
        source: Source,
        options: Options | None = None,
        *,
        interface: Signature | None = None,
        read: ir.Model | None = None,
    ) -> Session:
        while len(self._sessions) >= self._keep:
            self._sessions.pop(0).close()
        self._sessions.append(self._runtime.prepare(source, options))
        return self._sessions[-1]

    def close(self) -> None:
        while self._sessions:
            self._sessions.pop().close()


class Runtime(ABC):
    """Runs models in one way; has no state."""

    title: ClassVar[str]
    package: ClassVar[str | None] = None
    """Names the distribution that the runtime needs; None if it needs none."""
    extra: ClassVar[str | None] = None
    """Names the extra of onnxsmith that installs the runtime."""
    providers: ClassVar[tuple[str, ...]] = ("cpu",)
    """Lists the possible values of `Options.provider`."""
    levels: ClassVar[tuple[str, ...]] = ()
    """Lists the possible values of `Options.optimization`; empty if there is no choice."""
    takes_threads: ClassVar[bool] = False
    precision: ClassVar[str] = ""
    """Says how its numbers are computed here, if a program that uses it may get others; else ""."""
    profiles: ClassVar[bool] = False
    """Whether the runtime's process answers the request `profile`."""
    offered: ClassVar[bool] = True
    """Whether messages and lists name the runtime to users."""
    chosen: ClassVar[bool] = False
    """Whether the user gave options with the runtime's name."""

    @abstractmethod
    def missing(self) -> Problem | None:
        """Returns the problem that keeps this machine from using the runtime, or None."""

    def newest_opset(self) -> int:
        """Returns the newest version of ONNX's own operator set that the runtime runs. This is at most the newest
        version that onnx supports."""
        from onnxsmith.graph.structure.versions import newest  # imports onnx, which child processes do without

        return newest().opset

    def schemas(self, domains: Collection[str]) -> list[dict[str, Any]]:
        """Returns the runtime's own operators in these domains as plain data, with one entry for each version:
        `domain`, `name`, `since`, `inputs` and `outputs` as (name, is variadic, type variable, types), `attributes`
        with whether each is required."""
        return []

    def kernels(self, domain: str, op: str = "") -> list[dict[str, Any]] | None:
        """Returns the runtime's CPU kernels of an operator, or of all operators of the domain. Each kernel is plain
        data: `name`, the opset versions `first` and `last` (None: the newest), and `types`, the allowed types by type
        variable. Returns None if the runtime cannot list its kernels."""
        return None

    @abstractmethod
    def prepare(self, source: Source, options: Options | None = None) -> Session:
        """Prepares the model, and returns a session for it.

        Raises:
            OnnxsmithError: `runtime/…` if the runtime is not installed or refuses the model.
        """

    def preparer(self, *, keep: int = 1) -> Preparer:
        """Returns a preparer for many models, which keeps the sessions of the last `keep` models."""
        return _OneByOne(self, keep)


def get(name: str) -> Runtime:
    """Returns the runtime of this name, ready for use. Options in the name (`onnxruntime:basic`) apply to all its runs.

    Raises:
        OnnxsmithError: `runtime/unknown` for a name that no runtime has, `runtime/unknown-option` for an option that
            the runtime lacks, `runtime/not-installed` if its package is not installed.
    """
    runtime, options = parse(name)
    return runtime if options == Options() else _Chosen(name, runtime, options)


def parse(text: str) -> tuple[Runtime, Options]:
    """Parses `NAME[:OPTION…]` into a runtime and its options: a provider (`onnxruntime:cuda`), an optimisation level
    (`onnxruntime:disable`, or onnxruntime's own name `disable_all`), `threads=1`.

    Raises:
        OnnxsmithError: the errors of `get`.
    """
    name, *words = text.split(":")
    found = rooms.members("onnxsmith.runtimes", Runtime)
    if name not in found:
        raise problem(
            "runtime/unknown",
            f"there is no runtime {name!r}",
            fix=in_place_of(name, [name for name, one in found.items() if one.offered]),
        )
    runtime = found[name]
    options = Options()
    for word in words:
        options = _with(options, runtime, word, text)
    missing = runtime.missing()
    if missing is not None:
        raise OnnxsmithError(missing)
    return runtime, options


def _with(options: Options, runtime: Runtime, word: str, text: str) -> Options:
    level = _LEVELS.get(word, word)
    key, _, number = word.partition("=")
    if word in runtime.providers:
        return replace(options, provider=word)
    if level in runtime.levels:
        return replace(options, optimization=level)
    if key == "threads" and runtime.takes_threads and number.isdecimal():
        return replace(options, threads=int(number))
    known = [*runtime.providers, *runtime.levels, *(["threads=NUMBER"] if runtime.takes_threads else [])]
    raise problem(
        "runtime/unknown-option",
        f"{runtime.title} has no option {word!r}",
        where=text,
        fix=in_place_of(word, known),
    )


class _Chosen(Runtime):
    """Is a runtime with options from its name. Options of the caller apply only if the name does not set them."""

    chosen = True

    def __init__(self, name: str, runtime: Runtime, options: Options) -> None:
        self.title = name  # type: ignore[misc]
        self._runtime, self._options = runtime, options
        self.levels = runtime.levels  # type: ignore[misc]

    def missing(self) -> Problem | None:
        return self._runtime.missing()

    def newest_opset(self) -> int:
        return self._runtime.newest_opset()

    def schemas(self, domains: Collection[str]) -> list[dict[str, Any]]:
        return self._runtime.schemas(domains)

    def kernels(self, domain: str, op: str = "") -> list[dict[str, Any]] | None:
        return self._runtime.kernels(domain, op)

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        return self._runtime.prepare(source, self._both(options))

    def preparer(self, *, keep: int = 1) -> Preparer:
        return _ChosenPreparer(self._runtime.preparer(keep=keep), self._both)

    def _both(self, options: Options | None) -> Options:
        usual, asked = vars(Options()), vars(options or Options())
        own = {name: value for name, value in vars(self._options).items() if asked[name] == usual[name]}
        return Options(**{**asked, **own})


class _ChosenPreparer(Preparer):
    """Is a preparer with options from the runtime's name."""

    def __init__(self, preparer: Preparer, chosen: Callable[[Options | None], Options]) -> None:
        self._preparer, self._chosen = preparer, chosen

    def prepare(
        self,
        source: Source,
        options: Options | None = None,
        *,
        interface: Signature | None = None,
        read: ir.Model | None = None,
    ) -> Session:
        return self._preparer.prepare(source, self._chosen(options), interface=interface, read=read)

    def extended(
        self, file: Path, model: ir.Model, added: bytes, interface: Signature, options: Options | None = None
    ) -> Session | None:
        return self._preparer.extended(file, model, added, interface, self._chosen(options))

    def close(self) -> None:
        self._preparer.close()


def default() -> str:
    """Returns the name of the runtime that is used if the user named none: onnxruntime if it is installed, else the
    reference evaluator."""
    found = rooms.members("onnxsmith.runtimes", Runtime)
    return "onnxruntime" if found["onnxruntime"].missing() is None else "reference"


@contextmanager
def on_disk(source: Path | ir.Model, *, refer: bool = True) -> Iterator[tuple[Path, Path | None]]:
    """Yields the path of a binary file for the model: its own file, or a temporary file that is deleted at the end.
    Weights on disk are not written again. If they are in another folder, this folder is the second result. Without
    `refer` weights are written beside the temporary file, because some runtimes read external data only there."""
    from onnxsmith.graph.files.load import TEXT_SUFFIXES, load
    from onnxsmith.graph.files.save import save_for_now, write_referring
    from onnxsmith.graph.files.sharing import LARGE, held
    from onnxsmith.graph.structure.file_paths import is_text

    if isinstance(source, Path) and source.suffix not in TEXT_SUFFIXES and is_text(source.absolute()):
        yield source, None
        return
    with folders.temporary() as folder:
        path = folder / "model.onnx"
        model = load(source)
        weights = write_referring(model, path) if refer else None
        if weights is not None and not is_text(weights):
            weights = None
        if weights is None:
            save_for_now(model, path, external_data=True if held(model) > LARGE else None)
        yield path, weights


@contextmanager
def appended(file: Path, added: bytes) -> Iterator[tuple[Path, Path | None]]:
    """Yields the path of a temporary copy of the file with these bytes behind it, in the form of `on_disk`."""
    with folders.temporary() as folder:
        path = folder / "model.onnx"
        folders.copy(file, folders.OwnPath(path))
        with path.open("ab") as copy:
            copy.write(added)
        yield path, None


def onnx_source(source: Source) -> Path | ir.Model:
    """Returns the source if it is an ONNX model.

    Raises:
        OnnxsmithError: `runtime/wrong-source` for a program.
    """
    if isinstance(source, Program):
        raise problem(
            "runtime/wrong-source",
            f"this runtime runs ONNX models, not a {type(source).__name__}",
            fix="export it first, or use the runtime for such programs",
        )
    return source
