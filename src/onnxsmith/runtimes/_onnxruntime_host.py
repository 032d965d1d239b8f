"""Runs in the child process of `onnxruntime.py`. Only this module and its imports use onnxruntime."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 — registers bfloat16 and friends with numpy
import numpy as np

from onnxsmith.base import folders
from onnxsmith.base.problem import problem
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes._dtypes import bits, numpy_dtype, onnx_name, packed_nbytes, unpacked
from onnxsmith.runtimes._hosting import Hosting
from onnxsmith.runtimes._maps import of_map, to_map
from onnxsmith.runtimes._onnxruntime_errors import translate
from onnxsmith.runtimes.base import Array, Outputs, Value

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}
LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_WEIGHTS = "session.model_external_initializers_file_folder_path"
_NATIVE = set("?bBhHiIlLqQefd")
"""Lists the characters of the numpy dtypes that onnxruntime accepts and returns as arrays. Other dtypes are sent as raw
bits."""


_OF_GPU = ("CUDAExecutionProvider", "TensorrtExecutionProvider")
_INSTALLED = (
    "use --provider cpu; or install the build that has it: `pip uninstall -y onnxruntime && pip install "
    '"onnxsmith[gpu]"`'
)


class Host(Hosting[Any]):
    """Holds onnxruntime's inference sessions."""

    def about(self) -> dict[str, Any]:
        return _about()

    def more(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        if request["do"] == "limits":
            return _limits(request["ir"], request["opset"]), {}
        if request["do"] == "schemas":
            return {"schemas": _schemas(request["domains"])}, {}
        if request["do"] == "kernels":
            return {"kernels": _kernels(request["domain"], request["op"])}, {}
        if request["do"] == "profile":
            return _profiled(request, values), {}
        return super().more(request, values)

    def prepare(self, request: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        import onnxruntime as ort

        ort.set_default_logger_severity(4)
        ort.disable_telemetry_events()
        wanted = PROVIDERS.get(request["provider"], request["provider"])
        if wanted not in ort.get_available_providers():
            raise problem(
                "runtime/provider-missing",
                f"the installed onnxruntime has no {wanted}",
                why=f"it has {', '.join(ort.get_available_providers())}",
                fix=_INSTALLED if wanted in _OF_GPU else "use --provider cpu",
            )
        options = _options(request)
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        session = started(request["path"], options, wanted)
        session.disable_fallback()  # else a run that fails is repeated on another provider
        used = session.get_providers()[0]
        if used != wanted:
            raise problem(
                "runtime/provider-fallback",
                f"{wanted} was requested, but {used} would have run",
                why="onnxruntime falls back when a provider cannot start: a driver, a library or a device is missing",
                fix="run `onnxsmith doctor`, or use --provider cpu",
            )
        return session, {"provider": used, **_assigned(session, wanted)}

    def run(self, held: Any, values: dict[str, Value]) -> Outputs:
        types = {port.name: port.type for port in held.get_outputs()}
        if any(isinstance(value, list) for value in values.values()):
            maps = {port.name for port in held.get_inputs() if port.type.startswith("map(")}
            given = {name: to_map(value) if name in maps else value for name, value in values.items()}
            return dict(zip(types, map(_from_ort, held.run(list(types), given)), strict=True))
        # The session itself converts dtypes that numpy has; values of others go through OrtValues as raw bits.
        plain = all(_is_native(t) for t in types.values() if t.startswith("tensor("))
        if plain and all(_plain(value) or not isinstance(value, np.ndarray) for value in values.values()):
            return dict(zip(types, map(_from_ort, held.run(list(types), values)), strict=True))
        feeds = {name: _to_ort(value) for name, value in values.items() if value is not None}
        outputs = held.run_with_ort_values(list(types), feeds)
        return {name: _from_ort_value(value) for name, value in zip(types, outputs, strict=True)}

    def call(self, held: Any, values: dict[str, Value]) -> Callable[[], object]:
        """Returns a function that runs the session with inputs and outputs bound once. The other calls of the Python
        interface make or read a value for each input and output, which takes up to 40 µs in each run. A binding copies
        an input to the provider's device. For a provider other than the CPU, inputs are therefore bound in each run,
        because the copy belongs to the measured time."""
        if not _bindable(held, values):
            return super().call(held, values)
        binding = held.io_binding()
        feeds = {name: _to_ort(value) for name, value in values.items() if value is not None}
        for port in held.get_outputs():
            binding.bind_output(port.name)
        run = held.run_with_iobinding

        def bind() -> None:
            for name, value in feeds.items():
                binding.bind_ortvalue_input(name, value)

        def copied() -> None:
            bind()
            run(binding)

        bind()
        return copied if held.get_providers()[0] != PROVIDERS["cpu"] else lambda: run(binding)

    def around(self, held: Any, values: dict[str, Value]) -> str:
        return "run_with_iobinding" if _bindable(held, values) else "session.run, with conversions to and from numpy"


def _options(request: dict[str, Any]) -> Any:
    """Returns the session options that a `prepare` request asks for."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[request["optimization"]])
    options.intra_op_num_threads = request["threads"]
    options.enable_mem_pattern = bool(request.get("repeated"))
    if request.get("in_order"):
        options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    if request.get("unsaturated"):
        options.add_session_config_entry("session.x64quantprecision", "1")
    if request.get("weights") is not None:
        options.add_session_config_entry(_WEIGHTS, request["weights"])
    return options


def _profiled(request: dict[str, Any], values: dict[str, Value]) -> dict[str, Any]:
    """Returns the times of the kernels in runs of the model on these inputs, from onnxruntime's own profiler. Also
    returns the nodes of the graph that ran: the file's graph after onnxruntime's optimisation.

    `runs` is a list with the kernels of each run, in order: name, operator, provider, and microseconds without the
    kernels inside it (in a loop's body). `whole` has the microseconds of each run. `nodes` lists the nodes of the
    optimised graph: name, operator, inputs and outputs.
    """

    with folders.temporary() as folder:
        options = _options(request)
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / "profile")
        options.optimized_model_filepath = str(folder / "optimised.onnx")
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", "optimised.weights"
        )  # a file of protobuf holds at most 2 GB
        wanted = PROVIDERS.get(request["provider"], request["provider"])
        session = started(request["path"], options, wanted)
        call = Host().call(session, values)
        for _ in range(request["runs"]):
            call()
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        return {**kernels(events), "nodes": nodes(Path(options.optimized_model_filepath))}


def _assigned(session: Any, wanted: str) -> dict[str, Any]:
    """Counts the nodes that each provider runs (`nodes`), and lists the nodes that run on a provider other than
    `wanted` (`elsewhere`): provider, operator and name."""
    parts = session.get_provider_graph_assignment_info()
    elsewhere = [
        (part.ep_name, node.op_type, node.name) for part in parts if part.ep_name != wanted for node in part.get_nodes()
    ]
    counts: Counter[str] = Counter()
    for part in parts:  # a provider may have several parts
        counts[part.ep_name] += len(part.get_nodes())
    return {"nodes": dict(counts), "elsewhere": elsewhere}


def _about() -> dict[str, Any]:
    import onnxruntime as ort

    return {"version": ort.__version__, "providers": ort.get_available_providers()}


def _limits(ir_version: int, opset: int) -> dict[str, Any]:
    """Returns the newest IR version and opset, not above the given ones, in which a tiny model loads; 0 if none does.

    `starts` says for each provider in the build whether a session on it starts, without falling back to another.
    """
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    # Opset 8 and IR version 7 load in every release, so each search varies one number only.
    irs = (n for n in range(ir_version, 2, -1) if _loads(tiny(n, 8)))
    opsets = (n for n in range(opset, 6, -1) if _loads(tiny(7, n)))
    known = [provider for provider in ort.get_available_providers() if provider in PROVIDERS.values()]
    starts = {provider: provider in _loads(tiny(7, 8), provider) for provider in known}
    return {"ir": next(irs, 0), "opset": next(opsets, 0), "starts": starts}


def _schemas(domains: list[str]) -> list[dict[str, Any]]:
    """Returns the operators of these domains in every version. Each has its formal inputs and outputs as (name, is
    variadic, type variable, types), and its attributes with whether they are required."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    def formal(items: Any) -> list[Any]:
        return [(one.name, one.option.name == "Variadic", one.typeStr, sorted(one.types)) for one in items]

    return [
        {
            "domain": one.domain,
            "name": one.name,
            "since": one.since_version,
            "inputs": formal(one.inputs),
            "outputs": formal(one.outputs),
            "attributes": {name: bool(attribute.required) for name, attribute in one.attributes.items()},
        }
        for one in get_all_operator_schema()
        if one.domain in domains
    ]


_NO_LAST = 2**31 - 1
"""Is the last version that onnxruntime writes for a kernel without a last version."""


def _kernels(domain: str, op: str) -> list[dict[str, Any]] | None:
    """Returns the CPU kernels of an operator, or of a whole domain; None if this onnxruntime does not list its
    kernels."""
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    if not hasattr(native, "get_registered_ep_kernel_defs"):
        return None
    return [
        {
            "name": one.op_name,
            "first": one.version_range[0],
            "last": None if one.version_range[1] == _NO_LAST else one.version_range[1],
            "types": {variable: sorted(types) for variable, types in one.type_constraints.items()},
        }
        for one in native.get_registered_ep_kernel_defs(PROVIDERS["cpu"])
        if one.domain == domain and op in ("", one.op_name)
    ]


def _loads(model: bytes, provider: str = "CPUExecutionProvider") -> list[str]:
    """Returns the providers of a session for the model; empty if onnxruntime refuses the model."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = started(model, options, provider, falls_back=False)
    except Exception:  # noqa: BLE001 — a refusal is an answer here; onnxruntime's errors have no common base
        return []
    providers: list[str] = session.get_providers()
    return providers


def tiny(ir_version: int, opset: int) -> bytes:
    """Returns a model with one Identity node."""
    import onnx_ir as ir

    value = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1]))
    node = ir.node("Identity", [value])
    node.outputs[0].name, node.outputs[0].type, node.outputs[0].shape = "y", value.type, value.shape
    graph = ir.Graph([value], node.outputs, nodes=[node], opset_imports={"": opset}, name="tiny")
    data: bytes = ir.to_proto(ir.Model(graph, ir_version=ir_version)).SerializeToString()
    return data


def _is_native(tensor_type: str) -> bool:
    name = onnx_name(tensor_type)
    return name == "string" or numpy_dtype(name).char in _NATIVE


def _bindable(session: Any, values: dict[str, Value]) -> bool:
    """Whether all inputs and outputs can be bound. Sequences, maps and strings cannot be bound, because Python has no
    OrtValues for them."""
    tensors = all(
        port.type.startswith("tensor(") and port.type != "tensor(string)"
        for port in (*session.get_inputs(), *session.get_outputs())
    )
    return tensors and all(isinstance(value, np.ndarray) or value is None for value in values.values())


def _plain(value: Value) -> bool:
    return isinstance(value, np.ndarray) and (value.dtype.char in _NATIVE or value.dtype.kind in "OUS")


def _from_ort(value: object) -> Value:
    if isinstance(value, list):
        return [_from_ort(item) for item in value]
    if isinstance(value, dict):
        return of_map(value)
    if hasattr(value, "dense_shape"):
        return _expanded(value)
    return value  # type: ignore[return-value]


def _expanded(value: Any) -> Array:
    """Expands a sparse weight that is also an output to the dense tensor that the file declares."""
    whole: Array = np.zeros(tuple(value.dense_shape()), value.values().dtype)
    at = np.asarray(value.get_coo_data().indices())
    whole[tuple(at.T) if at.ndim == 2 else np.unravel_index(at, whole.shape)] = value.values()
    return whole


def _to_ort(value: Value) -> Any:
    import onnxruntime as ort

    assert isinstance(value, np.ndarray)
    if _plain(value):
        return ort.OrtValue.ortvalue_from_numpy(value)
    import onnx_ir as ir  # a slow import, needed only for dtypes that numpy lacks

    if ir.DataType.from_numpy(value.dtype).bitwidth < 8:
        raise problem(
            "runtime/dtype-unsupported",
            f"onnxruntime accepts no {value.dtype} input from Python",
            why="its Python interface cannot express how many elements share a byte",
            fix="run the model with --runtime reference",
        )
    raw = np.array(value, order="C").view(np.uint16 if value.itemsize == 2 else np.uint8)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, ir.DataType.from_numpy(value.dtype).value)


def _from_ort_value(value: Any) -> Value:
    if not value.has_value():
        return None
    if value.is_tensor_sequence():
        return _from_ort_sequence(value)
    name = onnx_name(value.data_type())
    if _is_native(value.data_type()):
        array: Array = value.numpy()
        return array
    shape = tuple(value.shape())
    data = ctypes.string_at(value.data_ptr(), packed_nbytes(name, shape))
    flat = np.frombuffer(data, dtype=numpy_dtype(name)) if bits(name) >= 8 else unpacked(data, name)
    return flat[: math.prod(shape)].reshape(shape)


def _from_ort_sequence(value: Any) -> Value:
    """Returns the elements of a sequence. Python gets the elements only as the result of a run, so this function runs a
    model that returns its input."""
    import onnx_ir as ir
    import onnxruntime as ort

    element = onnx_name(value.data_type().removeprefix("seq(").removesuffix(")"))
    type_ = ir.SequenceType(ir.TensorType(ir.DataType[element.upper()]))
    port = ir.Value(name="x", type=type_)
    node = ir.node("Identity", [port])
    node.outputs[0].name, node.outputs[0].type = "y", type_
    graph = ir.Graph([port], node.outputs, nodes=[node], opset_imports={"": 14}, name="same")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(ir.to_proto(ir.Model(graph, ir_version=7)).SerializeToString(), options)
    return _from_ort(session.run(None, {"x": value})[0])


def main() -> None:
    """Runs the child process."""
    serve(Host(), translate)


CPU = "CPUExecutionProvider"
_NVIDIA = ("CUDAExecutionProvider", "TensorrtExecutionProvider")


def started(model: str | bytes, options: Any, provider: str, *, falls_back: bool = True) -> Any:
    """Starts a session of the model, a path or bytes, on the provider. With `falls_back`, nodes that the provider lacks
    run on the CPU. Raises onnxruntime's own errors."""
    import onnxruntime as ort

    if provider in _NVIDIA:
        _load_cuda()
    others = [CPU] if falls_back and provider != CPU else []
    return ort.InferenceSession(model, options, providers=[provider, *others])


@functools.cache
def _load_cuda() -> None:
    """Loads the libraries of CUDA and cuDNN that pip installs (`onnxruntime-gpu[cuda,cudnn]`), because the system's
    loader does not look for them there. A missing library shows when the session starts, so onnxruntime's prints about
    it are dropped."""
    import onnxruntime as ort

    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(RuntimeError, OSError):
        ort.preload_dlls()


_SUFFIX = "_kernel_time"


def kernels(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the kernels of each run (`runs`), and the microseconds of each run (`whole`), from the profiler's events.

    A kernel is (name, operator, provider, microseconds). The event of a node with a body contains the events of the
    body. The times of the body are subtracted from the node's time. The events of one thread are nested or follow each
    other.
    """
    complete = [event for event in events if event.get("ph") == "X" and "ts" in event]
    wholes = sorted((e for e in complete if e["name"] == "model_run"), key=lambda e: e["ts"])
    # Of events that begin at the same time, the longer one contains the others.
    found = sorted((e for e in complete if e["name"].endswith(_SUFFIX)), key=lambda e: (e["ts"], -e["dur"]))
    own = _own_times(found)
    runs: list[list[tuple[str, str, str, float]]] = [[] for _ in wholes]
    at = 0
    for event, time in zip(found, own, strict=True):
        while at + 1 < len(wholes) and event["ts"] >= wholes[at]["ts"] + wholes[at]["dur"]:
            at += 1
        args = event.get("args", {})
        if runs:
            name = event["name"].removesuffix(_SUFFIX)
            runs[at].append((name, args.get("op_name", ""), args.get("provider", ""), time))
    return {"runs": runs, "whole": [float(e["dur"]) for e in wholes]}


def _own_times(found: list[dict[str, Any]]) -> list[float]:
    """Returns the duration of each event without the events inside it. `found` is sorted by the beginning of the
    events."""
    own = [float(event["dur"]) for event in found]
    open_: dict[Any, list[int]] = {}
    for index, event in enumerate(found):
        around = open_.setdefault(event.get("tid"), [])
        while around and event["ts"] >= found[around[-1]]["ts"] + found[around[-1]]["dur"]:
            around.pop()
        if around:
            own[around[-1]] -= float(event["dur"])
        around.append(index)
    return [max(time, 0.0) for time in own]  # times are rounded, so the inner ones may sum up to more


def nodes(path: Path) -> list[dict[str, Any]]:
    """Returns the nodes of a model: name, operator, inputs, outputs. Nodes of branches and bodies come after their
    owner."""
    import onnx_ir as ir

    from onnxsmith.graph.structure import walk

    return [
        {
            "name": node.name or "",
            "op": node.op_type,
            "inputs": [value.name for value in node.inputs if value is not None],
            "outputs": [value.name for value in node.outputs if value.name],
        }
        for node in walk.nodes(ir.load(path).graph)
    ]
