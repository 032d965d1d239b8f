"""Messages about the code of forward and about its arguments."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes._message_text import code_in
from onnxsmith.exporter.causes.base import Cause

_DATA_DEPENDENT = re.compile(
    r"Could not guard on data-dependent|Could not extract specialized integer from data-dependent"
    r"|DataDependentOutputException|aten\._local_scalar_dense|data-dependent"
)
_LOOP = re.compile(r"(while|for)\b")
_VALUE = re.compile(r"\.item\(\)|\.tolist\(\)|\b(int|float)\(")


class DataBranch(Cause):
    """Recognises `Could not guard on data-dependent expression Eq(u0, 1)`.

    torch gives the names u0, u1, … to numbers that Python took from a tensor, which are unknown while it traces.
    `Eq(u0, 1)` is the truth of a tensor that an `if` tests. The message explains neither.
    """

    # before FrozenAxis: some of these messages contain its word `specialized` too
    rank = 40

    def read(self, text: str) -> Problem | None:
        if not _DATA_DEPENDENT.search(text):
            return None
        code = code_in(text)
        if _LOOP.match(code):
            return Problem(
                "forward/loop-on-data",
                "the number of iterations of a loop depends on the value of a tensor",
                why="u0 in torch's message is a number that Python read from a tensor; so the number of iterations "
                "is unknown before the model runs",
                fix="use torch.while_loop, or a number of iterations that is the same in every call",
            )
        if _VALUE.search(code) and not code.startswith(("if", "elif", "assert")):
            return Problem(
                "forward/python-value",
                "Python converts a tensor to a number",
                why="u0 in torch's message is that number, which is unknown before the model runs",
                fix="leave out .item(), int() and float(): a tensor of rank 0 can be used in computations directly",
            )
        if not code:
            return Problem(
                "forward/branch-on-data",
                "Python needs the value of a tensor: for an `if`, or as a number",
                why="u0 in torch's message is that value, which is unknown before the model runs",
                fix="write an `if` as torch.where(condition, a, b) or torch.cond; for a number, leave out .item(), "
                "int() and float()",
            )
        return Problem(
            "forward/branch-on-data",
            "an `if` tests the value of a tensor",
            why="u0 in torch's message is that value, and Eq(u0, 1) tests whether the value is true; the value is "
            "unknown before the model runs",
            fix="write the choice with torch.where(condition, a, b), or with torch.cond for two branches",
        )


_NUMPY = re.compile(
    r"numpy\(\) is not supported for tensor subclasses|Can't call numpy\(\)|Converting a tensor to a NumPy array"
    r"|Cannot convert (?:a )?\w*\s*(?:tensor|FakeTensor) to (?:a )?numpy|__array__"
)


class NumpyCall(Cause):
    """Recognises `.numpy() is not supported for tensor subclasses`, and torch's other messages about numpy inside a
    trace.

    Inside a trace, tensors have no values for numpy.
    """

    rank = 35

    def read(self, text: str) -> Problem | None:
        if not _NUMPY.search(text):
            return None
        return Problem(
            "forward/numpy",
            "forward computes with numpy",
            why="while torch traces, tensors have no values, so numpy has nothing to compute with; in a "
            "TorchScript trace, numpy's result would become a constant",
            fix="use functions of torch in this line; if torch has no such function, build the computation from "
            "torch's operations, or run it before the model and pass the result as an input",
        )


_FAKE_CONSTANT = re.compile(r"fake tensor in the exported program constant")


class FakeConstant(Cause):
    """Recognises `We found a fake tensor in the exported program constant's list`, which names `lifted_tensor_0`.

    A tensor left torch's tracing and came back. torch reports this as an operator that cannot be traced.
    """

    rank = 45

    def read(self, text: str) -> Problem | None:
        if not _FAKE_CONSTANT.search(text):
            return None
        return Problem(
            "forward/data-attribute",
            "a tensor leaves torch's trace, for example through .data, and comes back as a constant",
            why="torch's message calls this tensor lifted_tensor_… and asks for an issue on GitHub; forward uses "
            "the tensor's .data, or keeps the tensor outside the module",
            fix="use the tensor itself, or .detach()",
        )


_POINTER = re.compile(r"Cannot access data pointer of Tensor")


class DataPointer(Cause):
    """Recognises `Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor)`.

    torch advises to wrap a custom kernel. Usually forward copies a tensor with Python's copy, or uses its address.
    """

    def read(self, text: str) -> Problem | None:
        if not _POINTER.search(text):
            return None
        return Problem(
            "export/capture-failed",
            "forward reads the memory of a tensor",
            why="while torch traces, tensors have no memory; copy.deepcopy(), .data_ptr(), pickling and kernels "
            "that are not registered as operators of torch need that memory",
            fix="write x.clone() in place of copy.deepcopy(x); or leave out .data_ptr(); or register the kernel as "
            "an operator with torch.library.custom_op",
        )


_DEVICE = re.compile(r"not compiled with CUDA enabled|No CUDA GPUs|Found no NVIDIA driver|to be on the same device")


class CudaDevice(Cause):
    """Recognises `Torch not compiled with CUDA enabled` and `Expected all tensors to be on the same device`.

    forward moves a tensor to a fixed device.
    """

    def read(self, text: str) -> Problem | None:
        if not _DEVICE.search(text):
            return None
        return Problem(
            "forward/device",
            "forward names a fixed device",
            why="a graph has no devices, and the export runs on the CPU",
            fix="use the device of an input: .to(x.device), device=x.device",
        )


_LIFTED = re.compile(r"lifted_tensor_\d+|Unsupported input type|not.{0,20}registered.{0,20}pytree|register_pytree_node")


class LiftedTensor(Cause):
    """Recognises `lifted_tensor_4` and `type … is not a registered pytree node`: an input that is not a tensor.

    Such an input is an object, for example a cache. torch sees its tensors as constants, or cannot split it into
    tensors.
    """

    def read(self, text: str) -> Problem | None:
        if not _LIFTED.search(text):
            return None
        return Problem(
            "export/object-input",
            "an argument of forward is an object that torch cannot split into tensors",
            why="an argument of a graph can be a tensor, a number, None, or a list, tuple or dictionary of these; "
            "tensors inside another object cannot be traced, or become constants called lifted_tensor_…",
            fix="wrap the module: let the wrapper's forward accept the object's tensors one by one, and build the "
            "object inside",
        )


_NO_FLATTENING = re.compile(
    r"__obj_flatten__|LinearPackedParamsBase|ConvPackedParamsBase|operator '?quantized::|quantized\.\w+"
)


class ObjFlatten(Cause):
    """Recognises `… does not have a field with name '__obj_flatten__'`.

    A module that was quantized in torch has packed weights, which are not tensors.
    """

    rank = 30

    def read(self, text: str) -> Problem | None:
        if not _NO_FLATTENING.search(text):
            return None
        return Problem(
            "export/quantized-module",
            "the module was quantized in PyTorch, and its weights are packed for PyTorch's own kernels",
            why="packed weights are not tensors, and ONNX has no operators that read them",
            fix="export the float module, then quantize the ONNX file to QuantizeLinear and DequantizeLinear with "
            "onnxruntime.quantization.quantize_dynamic or quantize_static",
        )


_MISSING = re.compile(
    r"missing a required (?:keyword-only )?argument: '(\w+)'|forward\(\) missing \d+ required .*?'(\w+)'"
)


class MissingArgument(Cause):
    """Recognises `missing a required argument: 'x'`.

    torch.onnx.export treats a dictionary at the end of the arguments as keyword arguments.
    """

    def read(self, text: str) -> Problem | None:
        found = _MISSING.search(text)
        if not found:
            return None
        name = found[1] or found[2]
        return Problem(
            "export/missing-argument",
            f"forward did not get its argument {name!r}",
            why="the example inputs lack this argument; or the last argument is a dictionary: torch.onnx.export "
            "treats such a dictionary as keyword arguments, but onnxsmith.export treats it as one argument",
            fix=f"give an example of this argument: return module, args, {{{name!r}: example}} from the factory, or "
            f"write kwargs={{{name!r}: example}} in Python",
        )
