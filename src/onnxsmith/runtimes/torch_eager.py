"""Calls the torch module itself with named arrays: the reference for an export."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.seams.base import alone
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes import _feeds
from onnxsmith.runtimes import _timing as timing
from onnxsmith.runtimes.base import Array, Feeds, Options, Outputs, Program, Runtime, Session, Source, Value

if TYPE_CHECKING:
    import torch


def _leaves(result: Any) -> list[Any]:
    from onnxsmith.base.seams.torch import trees as pytree

    return list(pytree.tree_leaves(result))


@dataclass
class TorchProgram(Program):
    """Holds a module, and the mapping of named arrays to the module's arguments.

    `leaves` are the flattened example arguments. `names[i]` is the name of leaf i if it is a tensor, None if it is a
    constant. `rebuild` turns leaves into `(args, kwargs)`. `leaves_of` turns a result into its leaves. Calls are made
    inside `around()`. Without `folds`, a capture keeps the weights as they are, and computes no new weights from them.
    `limits` are the smallest and the largest size of a symbolic dimension; inputs of other sizes are refused.
    """

    module: torch.nn.Module
    signature: Signature
    leaves: Sequence[Any]
    names: Sequence[str | None]
    rebuild: Any = field(repr=False)
    leaves_of: Any = field(default=_leaves, repr=False)
    around: Callable[[], AbstractContextManager[Any]] = field(default=nullcontext, repr=False)
    folds: bool = True
    limits: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)

    def arguments(self, feeds: Mapping[str, Value]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Makes `(args, kwargs)` with fresh tensors, so that a forward that writes to its input changes no array of the
        caller."""
        leaves = [
            to_tensor(feeds[name]) if name is not None else _fresh(leaf)
            for name, leaf in zip(self.names, self.leaves, strict=True)
        ]
        args, kwargs = self.rebuild(leaves)
        return args, kwargs


class TorchEager(Runtime):
    """Runs the torch module as its user calls it: without gradients, and on torch's default code paths."""

    title = "PyTorch, eager"
    package = "torch"
    extra = "torch"

    def missing(self) -> Problem | None:
        if find_spec("torch") is not None:
            return None
        return Problem("runtime/not-installed", "torch is not installed", fix='`pip install "onnxsmith[torch]"`')

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        if not isinstance(source, TorchProgram):
            raise problem(
                "runtime/wrong-source",
                "eager PyTorch runs a torch module, not an ONNX file",
                fix="use --runtime onnxruntime or --runtime reference for a file",
            )
        options = options or Options()
        if options.provider != "cpu":
            raise problem(
                "runtime/provider-missing",
                f"eager PyTorch is run on the CPU only, not on {options.provider!r}",
                fix="use --provider cpu",
            )
        return TorchSession(source)


_LEAST_TIME, _TIMES = 5.0, 100.0
"""Limits a run to these seconds, or to this multiple of the first run, which had valid inputs. A choice: a module may
loop for ever on a generated size."""


class TorchSession(Session):
    """Runs a torch module that is called with named arrays."""

    provider = "torch eager, cpu"

    def __init__(self, program: TorchProgram) -> None:
        from onnxsmith.base.seams.torch.threads import Threads

        self._program = program
        self._threads = Threads(program.module)
        self._limit = 0.0
        self.signature = program.signature

    def run(self, feeds: Feeds) -> Outputs:
        _feeds.check(feeds, self.signature, one_size=True)
        _check_limits(feeds, self._program)
        with alone():  # while another thread traces the module, its parameters have no values
            return self._run(feeds)

    def call(self, feeds: Feeds) -> Callable[[], object]:
        """Returns a function that calls the module on tensors that are made once. The function does not restore the
        module's state, because restoring takes longer than many modules run."""
        import torch

        args, kwargs = self._program.arguments(feeds)
        module, around = self._program.module, self._program.around

        def once() -> object:
            with torch.no_grad(), around():
                return module(*args, **kwargs)

        return once

    def timer(self, feeds: Feeds) -> timing.Timer:
        _feeds.check(feeds, self.signature, one_size=True)
        call = self.call(feeds)

        def samples(runs: int, inner: int, budget: float) -> list[int]:
            memory = Memory(self._program.module)
            try:
                with alone():
                    return timing.measured(call, runs=runs, inner=inner, budget=budget)
            finally:
                memory.restore()

        return timing.Timer("around the module's call, in this process", samples)

    def _run(self, feeds: Feeds) -> Outputs:
        import torch

        memory = Memory(self._program.module)
        begun = time.monotonic()
        try:
            args, kwargs = self._program.arguments(feeds)
            with within(self._limit), self._threads.chosen(), torch.no_grad(), self._program.around():
                result = self._program.module(*args, **kwargs)
            # The first run has valid inputs, so its time bounds those on generated inputs.
            self._limit = self._limit or max(_LEAST_TIME, _TIMES * (time.monotonic() - begun))
        except TooLongError as error:
            raise problem(
                "runtime/timeout",
                f"the torch module took longer than {self._limit:g} s and was stopped",
                where=", ".join(f"{name} {_shape(value)}" for name, value in feeds.items()),
                fix="look for a loop in the module that does not end on these inputs",
            ) from error
        except Exception as error:
            raise problem(
                "runtime/failed",
                "the torch module does not accept these inputs",
                where=", ".join(f"{name} {_shape(value)}" for name, value in feeds.items()),
                why=f"{type(error).__name__}: {error}"[:600],
            ) from error
        finally:
            memory.restore()
        leaves = [leaf for leaf in self._program.leaves_of(result) if leaf is not None]
        outputs = self.signature.outputs
        if len(leaves) != len(outputs):
            raise problem(
                "runtime/failed",
                f"the torch module returned {len(leaves)} outputs, but {len(outputs)} when it was captured",
                why="the number of outputs depends on the input",
            )
        return {port.name: to_array(leaf) for port, leaf in zip(outputs, leaves, strict=True)}


class Memory:
    """Holds the state that a module keeps between calls: buffers and attributes, also of its submodules.

    A stateful forward overwrites its state, binds a new tensor to it, counts in a plain attribute, or changes a list, a
    dictionary, a deque or an object in an attribute. `restore` undoes all of these changes, so that each run starts
    from the same state. `restore` also removes hooks that forward registered in its first call. The attribute that
    marks the hooks as registered is restored as well, so the next call registers them again.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        import torch

        from onnxsmith.base.seams.torch.held import attributes, held
        from onnxsmith.base.seams.torch.tensors import buffers_of

        inner = [m for m in module.modules() if not isinstance(m, torch.jit.ScriptModule)]
        self._attributes = [(vars(m), dict(vars(m)), dict(buffers_of(m))) for m in inner]
        torchs = vars(torch.nn.Module()).keys()
        hooks = [value for m in inner for name, value in vars(m).items() if "_hooks" in name and name in torchs]
        values = {id(one.value): one.value for one in held(module)}.values()
        self._dictionaries = [(value, dict(value)) for value in (*values, *hooks) if isinstance(value, dict)]
        self._dictionaries += [(own, dict(own)) for value in values if (own := attributes(value)) is not None]
        self._lists = [(value, list(value)) for value in values if isinstance(value, list | deque)]
        tensors = (value for value in (*values, *module.buffers()) if isinstance(value, torch.Tensor))
        unique = {id(tensor): tensor for tensor in tensors if not isinstance(tensor, torch.nn.Parameter)}
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in unique.values()]

    def restore(self) -> None:
        """Restores the state that the module had when this object was made."""
        import torch

        for attributes, saved, buffers in self._attributes:
            attributes.clear()
            attributes.update(saved)
            attributes["_buffers"].clear()
            attributes["_buffers"].update(buffers)
        for dictionary, items in self._dictionaries:
            if not _is_as(list(dictionary.values()), list(items.values())) or [*dictionary] != [*items]:
                dictionary.clear()
                dictionary.update(items)
        for sequence, values in self._lists:
            if not _is_as(list(sequence), values):
                sequence.clear()
                sequence.extend(values)
        with torch.no_grad():
            for tensor, copy in self._tensors:
                if tensor.shape == copy.shape:  # in place: views of the tensor get the old values, too
                    tensor.copy_(copy)
                else:
                    tensor.data = copy


def _is_as(now: list[Any], before: list[Any]) -> bool:
    """Whether both lists hold the very same objects in the same order."""
    return len(now) == len(before) and all(one is other for one, other in zip(now, before, strict=True))


def _check_limits(feeds: Feeds, program: TorchProgram) -> None:
    for port in program.signature.inputs if program.limits else ():
        for dim, size in zip(port.shape or (), getattr(feeds.get(port.name), "shape", ()), strict=False):
            low, high = program.limits.get(str(dim), (0, None))
            if size < low or (high is not None and size > high):
                most = "any size" if high is None else high
                raise problem(
                    "runtime/failed",
                    f"dimension {dim} is {size}, but the model was exported for {low} to {most}",
                    fix="give the dimension a torch.export.Dim with other limits",
                )


def in_double(program: TorchProgram) -> TorchProgram:
    """Returns the program with float64 in place of float32, float16 and bfloat16. This applies to module, constants and
    inputs, and to the default dtype for integers that become floats.

    Raises:
        OnnxsmithError: `runtime/failed` if the module cannot be copied.
    """
    import torch

    module = _copied(program.module, torch.float64)
    usual = torch.get_default_dtype()
    module.register_forward_pre_hook(lambda *_: torch.set_default_dtype(torch.float64))
    module.register_forward_hook(lambda *_: torch.set_default_dtype(usual), always_call=True)
    if not isinstance(module, torch.jit.ScriptModule):
        module.forward = _restoring(module.forward, usual)  # torch does not call the hook after every error

    def rebuild(leaves: Sequence[Any]) -> Any:
        return program.rebuild(
            [leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf for leaf in leaves]
        )

    return replace(program, module=module, rebuild=rebuild)


def in_single(program: TorchProgram) -> TorchProgram:
    """Returns the program with float32 in place of float16 and bfloat16 in the module. The program's inputs have to be
    float32.

    Raises:
        OnnxsmithError: `runtime/failed` if the module cannot be copied.
    """
    import torch

    return replace(program, module=_copied(program.module, torch.float32))


def _copied(module: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    try:
        return copy.deepcopy(module).to(dtype)
    except Exception as error:
        raise problem("runtime/failed", "the torch module cannot be copied", why=str(error)[:300]) from error


def _restoring(forward: Callable[..., Any], usual: Any) -> Callable[..., Any]:
    """Wraps `forward`: if it raises, torch's default dtype becomes `usual` again."""
    import torch

    @functools.wraps(forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return forward(*args, **kwargs)
        except BaseException:
            torch.set_default_dtype(usual)
            raise

    return run


def _shape(value: Value) -> str:
    return str(list(value.shape)) if isinstance(value, np.ndarray) else type(value).__name__


def _fresh(leaf: Any) -> Any:
    import torch

    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def to_tensor(value: Value) -> torch.Tensor:
    """Returns a new tensor with the array's values, for any dtype that numpy and torch share."""
    import torch

    array = np.array(value, order="C")
    raw = _RAW.get(array.dtype.name)
    if raw is None:
        return torch.from_numpy(array.view(array.dtype.str))  # numpy has two dtypes of unsigned 64 bits
    # from_numpy refuses the dtypes of ml_dtypes: hand over the bits, and view them as the dtype of torch.
    return (
        torch.from_numpy(array.reshape(-1).view(raw))
        .view(getattr(torch, _TORCH[array.dtype.name]))
        .reshape(array.shape)
    )


def to_array(value: Any) -> Array:
    """Returns the array of a tensor or a Python number; bfloat16 and float8 become arrays of ml_dtypes."""
    import torch

    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    tensor = value.detach().cpu().contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    names = {torch_name: name for name, torch_name in _TORCH.items()}
    if name not in names:
        return np.array(tensor.resolve_conj().resolve_neg().numpy())
    dtype = np.dtype(getattr(ml_dtypes, names[name]))
    raw = tensor.reshape(-1).view(torch.int16 if dtype.itemsize == 2 else torch.uint8)
    values: Array = np.array(raw.numpy()).view(dtype).reshape(tensor.shape)
    return values


_TORCH = {
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2": "float8_e5m2",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
}
"""Maps the names of dtypes in ml_dtypes to torch's names, for dtypes that numpy lacks."""
_RAW = {name: np.int16 if name == "bfloat16" else np.uint8 for name in _TORCH}


class TooLongError(BaseException):
    """Says that the time is over. This is not an Exception, so that the interrupted code does not catch it among its
    own errors."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises TooLongError in this thread if the block takes longer than `seconds`; 0 for no limit."""
    if not seconds:
        yield
        return
    stop = _Stop(threading.get_ident())
    timer = threading.Timer(seconds, stop.now)
    timer.daemon = True
    timer.start()
    arrived = False
    try:
        yield
    except TooLongError:
        arrived = True
        raise
    finally:
        timer.cancel()
        if stop.end() and not arrived:
            _await()


class _Stop:
    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._lock = threading.Lock()
        self._over = self._sent = False

    def now(self) -> None:
        with self._lock:
            if not self._over:
                self._sent = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(TooLongError))

    def end(self) -> bool:
        """Stops sending the exception, and returns whether it was sent."""
        with self._lock:
            self._over = True
            return self._sent


def _await() -> None:
    """Waits for an exception that was sent at the last moment, so that the exception does not arrive later. The
    exception cannot be recalled: clearing it leaves the interpreter's flag set, and CPython 3.11 then never ends under
    a profile function."""
    with contextlib.suppress(TooLongError):
        for _ in range(_STEPS):
            time.sleep(0.001)


_STEPS = 1000
"""Limits the milliseconds to wait for the exception. A choice: the interrupted code catches the exception within a
second."""
