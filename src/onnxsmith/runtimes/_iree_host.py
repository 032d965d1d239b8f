"""Runs in the child process of `iree.py`. Only this module imports iree.

The compiler runs in this process, not as the tool `iree-compile`, so that the limits of memory and time apply to it.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.files.external import in_memory
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.schema import versions
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.graph.surgery.names import fix_symbols
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes._dtypes import numpy_dtype
from onnxsmith.runtimes._hosting import Hosting
from onnxsmith.runtimes._reference_evaluator import read
from onnxsmith.runtimes.base import Array, Outputs, Value

_FLAGS = (
    "--iree-hal-target-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-type=onnx",
    "--iree-torch-use-strict-symbolic-shapes=false",  # else sizes that do not fit together are read beyond their ends
    "--iree-input-demote-f64-to-f32=false",  # the results would have fewer digits than their dtype says
)
_NAME = "main"
"""Names the function that IREE makes from the graph."""
_KEPT = 4
"""Limits the input sizes for which a session keeps a compiled model. A choice: each compiled model holds the weights
again."""
_READ = 2**16
"""Limits the bytes of the compiler's output that are read. A choice: only the first error counts."""
_ANY_OPSET = 13
"""Sets the opset of a model that imports no opset, because the compiler needs an opset."""
_OTHERS = "use --runtime onnxruntime or --runtime reference"

Shapes = tuple[tuple[int, ...], ...]
"""Lists the sizes of each input."""


class CompilerError(Exception):
    """Holds the compiler's diagnostics."""


@dataclass
class Held:
    """Holds a model that was read, and the functions compiled from it."""

    model: ir.Model
    names: list[str]
    """Names the inputs, in IREE's order."""
    dtypes: list[str]
    """Lists the dtypes of the outputs."""
    symbolic: Any = None
    """Is the function for all sizes; None if IREE cannot make such a function."""
    is_fixed: bool = False
    """Whether the model itself fixes all sizes."""
    static: OrderedDict[Shapes, Any] = field(default_factory=OrderedDict)
    """Maps some sizes to functions for these sizes. The least recently used function is first."""
    last: Any = None
    """Is the function that ran last."""


class Host(Hosting[Held]):
    """Holds compiled models. Outputs are named by index."""

    def about(self) -> dict[str, Any]:
        import iree.compiler.api  # noqa: F401 — import it now, outside the time limit of any model

        _config()
        return {"version": metadata.version("iree-base-compiler")}

    def prepare(self, request: dict[str, Any]) -> tuple[Held, dict[str, Any]]:
        model = _plain(Path(request["path"]), request["weights"])
        given = [value for value in model.graph.inputs if value.const_value is None]
        typed = inferred(model)[0]
        held = Held(model, [str(value.name) for value in given], list(map(_dtype, typed.graph.outputs)))
        held.is_fixed = all(value.shape is not None and value.shape.is_static() for value in given)
        try:
            held.symbolic = _compiled(typed)
        except (CompilerError, OnnxsmithError):
            if held.is_fixed:
                raise
        return held, {"inputs": held.names, "shapes": "static" if held.symbolic is None else "symbolic"}

    def run(self, held: Held, values: dict[str, Value]) -> Outputs:
        given = _given(held, values)
        results = _run_symbolic(held, given)
        found: Outputs = {"shapes": np.array("static" if results is None else "symbolic", object)}
        if results is None:
            held.last = _static(held, given)
            results = held.last(*given)
        several = results if isinstance(results, tuple | list) else [] if results is None else [results]
        pairs = zip(several, held.dtypes, strict=True)
        return found | {str(index): _array(result, dtype) for index, (result, dtype) in enumerate(pairs)}

    def call(self, held: Held, values: dict[str, Value]) -> Callable[[], object]:
        from iree import runtime

        self.run(held, values)  # chooses the function
        function, device = held.last, _config().device
        given = [runtime.asdevicearray(device, value) for value in _given(held, values)]
        return lambda: function(*given)


def _plain(path: Path, weights: str | None) -> ir.Model:
    """Returns the model as IREE's importer needs it: without calls of local functions, and with every node named. The
    importer ignores domains, and would take an operator of another domain for ONNX's operator of the same name."""
    model, reason = inlined(read(path, None if weights is None else Path(weights)))
    if reason:
        raise problem("runtime/unknown-operator", "IREE has no local functions", why=reason, fix=_OTHERS)
    for node in walk.all_nodes(model):
        if node.domain not in ("", "ai.onnx") and versions(node.op_type, ""):
            raise problem(
                "runtime/unknown-operator",
                f"IREE does not have the operator {node.domain}::{node.op_type}",
                where=f"node {walk.node_label(node)!r}",
                why="IREE ignores the domain, and would compute ONNX's operator of the same name",
                fix="replace the node, or use --runtime onnxruntime",
            )
        node.name = node.name or next((value.name for value in node.outputs if value.name), None)
    model.graph.name = _NAME
    model.opset_imports.setdefault("", _ANY_OPSET)
    return model


def _dtype(value: ir.Value) -> str:
    return value.dtype.name.lower() if value.dtype is not None else "undefined"


def _given(held: Held, values: dict[str, Value]) -> list[Array]:
    found = [value for value in map(values.get, held.names) if isinstance(value, np.ndarray)]
    return [np.ascontiguousarray(value).reshape(value.shape) for value in found]


def _run_symbolic(held: Held, given: list[Array]) -> Any:
    """Runs the function for all sizes; returns None if the function refuses these inputs."""
    if held.symbolic is None:
        return None
    try:
        held.last = held.symbolic
        return held.symbolic(*given)
    except (RuntimeError, ValueError, IndexError):
        if held.is_fixed:
            raise
        # If the model compiles for these sizes, the symbols were to blame. If not, the first error says more.
        try:
            _static(held, given)
        except CompilerError:
            pass
        else:
            return None
        raise


def _static(held: Held, given: list[Array]) -> Any:
    """Returns the function for the sizes in `given`."""
    shapes = tuple(value.shape for value in given)
    if shapes not in held.static:
        made = _compiled(inferred(_fixed(held, shapes))[0])
        while len(held.static) >= _KEPT:
            held.static.popitem(last=False)
        held.static[shapes] = made
    held.static.move_to_end(shapes)
    return held.static[shapes]


def _fixed(held: Held, shapes: Shapes) -> ir.Model:
    """Returns a copy of the model in which the inputs have fixed sizes. Declared sizes that do not follow from the
    fixed sizes become unknown."""
    copy = cloned(held.model)
    inputs = {value.name: value for value in copy.graph.inputs}
    sizes: dict[str, set[int]] = {}
    for name, shape in zip(held.names, shapes, strict=True):
        for dim, size in zip(inputs[name].shape or (), shape, strict=False):
            if isinstance(dim, ir.SymbolicDim) and dim.value is not None:
                sizes.setdefault(dim.value, set()).add(size)
    # A symbol with two sizes is only a hint in ONNX; its dimensions become unknown below.
    fix_symbols(copy, {name: min(found) for name, found in sizes.items() if len(found) == 1})
    values = [value for graph in walk.main_graphs(copy) for value in (*graph.inputs, *graph.outputs)]
    for value in (*values, *(value for node in walk.all_nodes(copy) for value in node.outputs)):
        if value.shape is not None and not value.shape.is_static():
            value.shape = ir.Shape([dim if isinstance(dim, int) else None for dim in value.shape])
    for name, shape in zip(held.names, shapes, strict=True):
        inputs[name].shape = ir.Shape(shape)
    return copy


def _compiled(model: ir.Model) -> Any:
    """Compiles the model to a function.

    Raises:
        CompilerError: if IREE refuses it.
        OnnxsmithError: `runtime/failed` if a rank is unknown, because the importer would take it for 0.
    """
    from iree import runtime

    for value in (*model.graph.inputs, *(value for node in walk.all_nodes(model) for value in node.outputs)):
        is_used = value.uses() or value.is_graph_output()
        if is_used and (value.type is None or (isinstance(value.type, ir.TensorType) and value.shape is None)):
            raise problem(
                "runtime/failed",
                "IREE needs the rank and the dtype of every tensor",
                where=f"tensor {value.name!r}",
                why="rank and dtype do not follow from those of the inputs",
                fix=_OTHERS,
            )
    config = _config()
    module = runtime.VmModule.copy_buffer(config.vm_instance, _binary(_imported(model)))
    return runtime.load_vm_module(module, config)[_NAME]


@cache
def _config() -> Any:
    """Returns IREE's configuration for the CPU, in the caller's thread."""
    from iree import runtime

    return runtime.Config("local-sync")


def _imported(model: ir.Model) -> bytes:
    """Imports the model into MLIR bytecode."""
    from iree.compiler.extras import onnx_importer
    from iree.compiler.ir import Context

    info = onnx_importer.ModelInfo(ir.to_proto(_raw(in_memory(model))))
    module = info.create_module(context=Context()).operation
    found = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `_compiled` refuses missing types unless nothing reads them
        try:
            onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
        except onnx_importer.OnnxImportError as error:
            raise CompilerError(str(error)) from error
        module.write_bytecode(found)
    return found.getvalue()


def _raw(model: ir.Model) -> ir.Model:
    """Returns a copy whose tensors all hold their values as bytes. For some dtypes the importer cannot read the other
    forms."""
    copy = cloned(model)
    for value in walk.initializers(copy):
        value.const_value = _as_bytes(value.const_value)
    for node in walk.all_nodes(copy):
        for name, attribute in list(node.attributes.items()):
            if isinstance(attribute, ir.Attr) and attribute.type is ir.AttributeType.TENSOR:
                node.attributes[name] = ir.AttrTensor(name, _as_bytes(attribute.as_tensor()))
    return copy


def _as_bytes(tensor: Any) -> Any:
    if not isinstance(tensor, ir.TensorProtoTensor) or tensor.dtype is ir.DataType.STRING:
        return tensor
    return ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=tensor.name)


def _binary(bytecode: bytes) -> bytes:
    """Compiles the bytecode to a program.

    Raises:
        CompilerError: with all messages of the compiler and its linker.
    """
    from iree.compiler.api import Output, Session, Source

    _forget_output()
    with Session() as session:
        session.set_flags(*_FLAGS)
        invocation = session.invocation()
        invocation.enable_console_diagnostics()
        if not invocation.parse_source(Source.wrap_buffer(session, bytecode)) or not invocation.execute():
            raise CompilerError(_output())
        output = Output.open_membuffer()
        invocation.output_vm_bytecode(output)
        return bytes(memoryview(output.map_memory()))


def _forget_output() -> None:
    """Empties standard error, a file of the caller. Otherwise, messages about the previous model would be taken for the
    cause of a crash."""
    with suppress(OSError):
        os.ftruncate(2, 0)
        os.lseek(2, 0, os.SEEK_SET)


def _output() -> str:
    """Returns the start of standard error. IREE writes its diagnostics only to standard error; they stay for the
    caller."""
    with suppress(OSError):
        return os.pread(2, _READ, 0).decode(errors="replace")
    return ""


def _array(result: Any, dtype: str) -> Array:
    """Returns the result as an array of its declared dtype. IREE returns unsigned integers as signed integers, and
    bools as bytes."""
    array: Array = np.array(result.to_host())
    wanted = None if dtype == "undefined" else numpy_dtype(dtype)
    if wanted is None or array.dtype == wanted or array.dtype.kind not in "iu":
        return array
    if wanted.kind == "b":
        return array.astype(bool)
    return array.view(wanted) if wanted.kind == "u" and wanted.itemsize == array.dtype.itemsize else array


def translate(error: Exception) -> OnnxsmithError:
    """Turns IREE's diagnostics into a problem. The problem quotes the first error, with the node and operator that the
    error names."""
    said = str(error).strip()
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    first = next((line for line in lines if re.search(r"\berror: ", line)), lines[0] if lines else type(error).__name__)
    placed = re.match(r'(?:.*?\berror: )?(?:loc\("([^"]*)"\): )?(.*)', first)
    node, why = (placed[1] or "", placed[2]) if placed else ("", first)
    where = f"node {node!r}" if node and node != f"graph:{_NAME}" else ""
    lacking = re.search(r"failed to legalize operation 'torch\.operator'.*?name = \"onnx\.([\w.]+)\"[^>]*>(.*)", why)
    if lacking:
        return problem(
            "runtime/unknown-operator",
            f"IREE cannot compile the operator {lacking[1]} in this form",
            where=where,
            why=_form(lacking[2])[:600],
            fix="replace the node, or use --runtime onnxruntime",
        )
    if part := re.search(r"failed to legalize operation '([\w.]+)'.*?: %\S+ = \"[\w.]+\"(?:\([^)]*\))?(.*)", why):
        return problem(
            "runtime/unknown-operator",
            f"IREE cannot compile {part[1]}, a part of the node's operator, in this form",
            where=where,
            why=_form(part[2])[:600],
            fix="replace the node, or use --runtime onnxruntime",
        )
    if literal := re.search(r"'torch\.vtensor\.literal' op inferred type.* of operation '[^']*\],u(i\w+)>'", why):
        return problem(
            "runtime/no-kernel",
            f"IREE cannot compile constants of u{literal[1].replace('i', 'int')}",
            where=f"tensor {node!r}" if node else "",
            why="IREE's compiler reads these constants as signed integers, which contradicts their type",
            fix="make the constant an input, or use --runtime onnxruntime",
        )
    if "list contained type" in why:
        return problem(
            "runtime/no-kernel",
            "IREE cannot compile a sequence of tensors of different types",
            where=where,
            why="in IREE the shape is a part of the type, and all tensors of a sequence need the same type",
            fix=_OTHERS,
        )
    if symbol := re.search(r"undefined symbol: (\w+)", said):
        return problem(
            "runtime/no-kernel",
            f"IREE's programs for the CPU have no function {symbol[1]}",
            where=where,
            why="IREE's compiler expands such functions for float, but not for double",
            fix="cast to float before the node, or use --runtime onnxruntime",
        )
    failed = re.search(r"Error invoking function: \S+:\d+: (.*?)(?:; while|$)", why)
    return problem(
        "runtime/failed",
        "IREE refused or failed",
        where=where,
        why=(failed[1] if failed else why)[:600],
        fix="`onnxsmith explain runtime/failed` lists what these messages usually mean",
    )


def _form(said: str) -> str:
    """Returns types and attributes of an operator without the words of MLIR around them."""
    plain = re.sub(r"!torch\.vtensor<\[([^\]]*)\],(\w+)>", r"\2[\1]", said)
    return " ".join(plain.replace("torch.onnx.", "").strip(" :").split())


def main() -> None:
    """Runs the child process."""
    serve(Host(), translate)
