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
                why="u0 in torch's message is a number that Python took from a tensor; the number of iterations is "
                "unknown before the model runs",
                fix="use torch.while_loop, or a number of iterations that is the same in every call",
            )
        if _VALUE.search(code) and not code.startswith(("if", "elif", "assert")):
            return Problem(
                "forward/python-value",
                "Python makes a number of a tensor",
                why="u0 in torch's message is that number: it is unknown before the model runs",
                fix="leave out .item(), int() and float(): a tensor of rank 0 can be used in computations directly",
            )
        if not code:
            return Problem(
                "forward/branch-on-data",
                "Python needs the value of a tensor: for an `if`, or as a number",
                why="u0 in torch's message is that value: it is unknown before the model runs",
                fix="write a choice with torch.where(condition, a, b) or torch.cond; leave out .item(), int() and "
                "float() of a number",
            )
        return Problem(
            "forward/branch-on-data",
            "an `if` tests the value of a tensor",
            why="u0 in torch's message is that value, and Eq(u0, 1) asks whether it is true; it is unknown before the "
            "model runs",
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
            why="while torch traces, tensors have no values, so numpy has nothing to compute with; in a trace by "
            "example its result would be a constant",
            fix="use functions of torch in this line; what torch has no function for is written in torch's operations, "
            "or computed before the model runs and given to it as an input",
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
            "a tensor leaves torch's tracing, by .data for example, and comes back as a constant",
            why="torch calls it lifted_tensor_… and asks for an issue on GitHub; it is the tensor whose .data forward "
            "uses, or that forward keeps outside the module",
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
            why="while torch traces, tensors have no memory: copy.deepcopy(), .data_ptr(), pickling and kernels that "
            "are no operators of torch need it",
            fix="write x.clone() in place of copy.deepcopy(x); or leave out .data_ptr(); or make a kernel an operator "
            "with torch.library.custom_op",
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
            why="a graph takes only tensors, numbers, None, and lists, tuples and dictionaries of them; tensors inside "
            "another object become constants of the graph, called lifted_tensor_…, or cannot be traced",
            fix="wrap the module: let forward take the tensors of the object one by one, and build the object inside",
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
            why="the example inputs lack it; or it is a dictionary at the end of the arguments, which "
            "torch.onnx.export treats as keyword arguments, and onnxsmith.export as an argument",
            fix=f"give an example for it: return module, args, {{{name!r}: example}} from the factory, or write "
            f"kwargs={{{name!r}: example}} in Python",
        )
