"""Triton, TensorRT and C++: what is written, compiled where a compiler is, run where the client is."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.target_checks import Bundle
from onnxsmith.deployment.bundles.forms import cpp
from tests.deployment.bundles.models import HOSTILE, checks, classifier, hostile, identity, linear, written

STUBS = Path(__file__).parent / "stubs"
ROOT = os.environ.get("ONNXRUNTIME_ROOT", "")
needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler is installed")
needs_headers = pytest.mark.skipif(
    not ROOT or shutil.which("cmake") is None or shutil.which("c++") is None,
    reason="no registry has onnxruntime's headers: set ONNXRUNTIME_ROOT to a folder that has them",
)


def bundled(model: Any, folder: Path, form: str, **how: Any) -> Path:
    result = onnxsmith.bundle(model, folder / form, form=form, **how)
    assert result.ok, result.report.problems
    assert result.path is not None
    return result.path


def refused(model: Path, folder: Path, form: str) -> str:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(model, folder / "o", form=form)
    assert not (folder / "o").exists()
    return caught.value.problem.id


# Triton


def config_type() -> Any:
    """A message with the fields of Triton's ModelConfig that are written."""
    file = descriptor_pb2.FileDescriptorProto(name="config.proto", package="t", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    kinds = file.enum_type.add(name="DataType")
    names = ["INVALID", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16",
    "FP32",
             "FP64", "STRING", "BF16"]  # fmt: skip
    for number, name in enumerate(names):
        kinds.value.add(name=f"TYPE_{name}", number=number)
    reshape = file.message_type.add(name="Reshape")
    reshape.field.add(name="shape", number=1, type=field.TYPE_INT64, label=field.LABEL_REPEATED)
    port = file.message_type.add(name="Port")
    port.field.add(name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    port.field.add(
        name="data_type", number=2, type=field.TYPE_ENUM, type_name=".t.DataType", label=field.LABEL_OPTIONAL
    )
    port.field.add(name="dims", number=3, type=field.TYPE_INT64, label=field.LABEL_REPEATED)
    port.field.add(
        name="reshape", number=4, type=field.TYPE_MESSAGE, type_name=".t.Reshape", label=field.LABEL_OPTIONAL
    )
    port.field.add(name="optional", number=5, type=field.TYPE_BOOL, label=field.LABEL_OPTIONAL)
    file.message_type.add(name="Batching")
    model = file.message_type.add(name="ModelConfig")
    model.field.add(name="name", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    model.field.add(name="backend", number=2, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    model.field.add(name="max_batch_size", number=3, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    for number, name in ((4, "input"), (5, "output")):
        kind = {"type": field.TYPE_MESSAGE, "type_name": ".t.Port"}
        model.field.add(name=name, number=number, label=field.LABEL_REPEATED, **kind)
    model.field.add(name="dynamic_batching", number=6, type=field.TYPE_MESSAGE, type_name=".t.Batching",
                    label=field.LABEL_OPTIONAL)  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.ModelConfig"))


def config(folder: Path) -> Any:
    (file,) = folder.glob("model_repository/*/config.pbtxt")
    return text_format.Parse(file.read_text(encoding="utf-8"), config_type()())


def test_the_batch_is_declared(tmp_path: Path) -> None:
    out = bundled(linear(tmp_path), tmp_path, "triton", dim_ranges=("batch=1:4:16",))
    found = config(out)
    assert (found.name, found.max_batch_size, found.HasField("dynamic_batching")) == ("linear", 16, True)
    assert ([*found.input[0].dims], [*found.output[0].dims]) == ([3], [2])
    assert (out / "model_repository" / "linear" / "1" / "model.onnx").is_file()


def test_without_a_range_the_shapes_are_whole(tmp_path: Path) -> None:
    found = config(bundled(linear(tmp_path), tmp_path, "triton"))
    assert (found.max_batch_size, [*found.input[0].dims]) == (0, [-1, 3])


@pytest.mark.parametrize("name", ["cls", "names", "model", "self", "my-model", "v1.2", "a_b", "2fast"])
def test_the_model_has_the_name_that_was_given(tmp_path: Path, name: str) -> None:
    """A model's name is that of a folder: words of a language are no reason to change it."""
    out = bundled(linear(tmp_path), tmp_path, "triton", name=name)
    assert config(out).name == name
    assert (out / "model_repository" / name / "1" / "model.onnx").is_file()
    assert f"MODEL = {name!r}" in (out / "client.py").read_text()
    assert json.loads((out / "bundle.json").read_text())["name"] == name


@needs_compiler
@pytest.mark.parametrize("name", ["class", "my-model", "2fast", "v1.2", "model"])
def test_the_code_compiles_under_such_names(tmp_path: Path, name: str) -> None:
    out = bundled(linear(tmp_path), tmp_path, "cpp", name=name, clients={"onnxruntime": tmp_path})
    compiles(out / "verify.cpp")


def test_hostile_names_and_scalars(tmp_path: Path) -> None:
    found = config(bundled(hostile(tmp_path), tmp_path, "triton"))
    assert [port.name for port in found.input] == [f"{name} in" for name in HOSTILE] + ["self"]


def test_a_scalar_is_reshaped(tmp_path: Path) -> None:
    found = config(bundled(identity(tmp_path, ("s", "t", TensorProto.FLOAT, [])), tmp_path, "triton"))
    assert ([*found.input[0].dims], [*found.input[0].reshape.shape]) == ([1], [])


def test_only_the_python_runner_is_claimed(tmp_path: Path) -> None:
    result = onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="triton")
    assert {name: one.state for name, one in checks(result.report).items()} == {
        "python runner": "equal",
        "model repository": "not run",
    }
    ast.parse((tmp_path / "o" / "client.py").read_text(encoding="utf-8"))


# TensorRT


def profile(folder: Path) -> list[str]:
    line = (folder / "build.sh").read_text(encoding="utf-8").partition("exec ")[2].replace("\\\n", " ")
    return [word for word in shlex.split(line) if "Shapes" in word]


def test_the_profile_is_the_declared_range(tmp_path: Path) -> None:
    out = bundled(linear(tmp_path), tmp_path, "tensorrt", dim_ranges=("batch=1:4:16",))
    assert profile(out) == ["--minShapes=x:1x3", "--optShapes=x:4x3", "--maxShapes=x:16x3"]
    assert "No range" not in (out / "build.sh").read_text()
    assert os.access(out / "build.sh", os.X_OK)
    for name in ("trt_model.py", "verify_trt.py"):
        ast.parse((out / name).read_text(encoding="utf-8"))


def test_an_undeclared_range_is_said(tmp_path: Path) -> None:
    out = bundled(linear(tmp_path), tmp_path, "tensorrt")
    assert re.search(r"# No range was declared for 'batch'", (out / "build.sh").read_text())
    least, usual, most = (int(re.findall(r"x:(\d+)x3", text)[0]) for text in profile(out))
    assert least <= usual <= most


def test_fixed_shapes_have_no_profile(tmp_path: Path) -> None:
    assert profile(bundled(identity(tmp_path, ("x", "y", TensorProto.FLOAT, [2, 3])), tmp_path, "tensorrt")) == []


def read_by_trtexec(option: str) -> dict[str, str]:
    """The shapes of an option by input, as trtexec of TensorRT 10 takes it apart: at commas, then at single quotes, or
    at the last colon if there are none."""
    found = {}
    for part in option.partition("=")[2].split(","):
        pieces = part.split("'")
        assert len(pieces) in (1, 3), "trtexec refuses another number of quotes"
        name, _, shape = part.rpartition(":") if len(pieces) == 1 else (pieces[1], ":", pieces[2].removeprefix(":"))
        found[name] = shape
    return found


NAMES = [
    "serving_default_x:0",
    "pixel values",
    "a:b:c",
    'say "x"',
    "$HOME",
    "back\\slash",
    "`id`",
    "a=b",
    "!x",
    "é",
    "a;b",
]


def test_names_are_quoted_as_trtexec_reads_them(tmp_path: Path) -> None:
    model = identity(tmp_path, *[(name, f"{name} out", TensorProto.FLOAT, ["n", 3]) for name in NAMES])
    out = bundled(model, tmp_path, "tensorrt", dim_ranges=("n=1:2:4",))
    least, usual, most = profile(out)
    assert read_by_trtexec(least) == dict.fromkeys(NAMES, "1x3")
    assert read_by_trtexec(usual) == dict.fromkeys(NAMES, "2x3")
    assert read_by_trtexec(most) == dict.fromkeys(NAMES, "4x3")


@pytest.mark.parametrize("name", ["a,b", "it's"])
def test_a_name_that_trtexec_cannot_read_is_refused(tmp_path: Path, name: str) -> None:
    model = identity(tmp_path, (name, "y", TensorProto.FLOAT, ["n"]))
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(model, tmp_path / "o", form="tensorrt")
    problem = caught.value.problem
    assert problem.id == "bundle/not-for-form"
    words = shlex.split(problem.fix.split("`")[1])
    assert words[:4] == ["onnxsmith", "rename", str(model), name]
    with onnxsmith.edit(model, tmp_path / "renamed.onnx") as m:
        m.rename(name, words[4])
    assert onnxsmith.bundle(tmp_path / "renamed.onnx", tmp_path / "o", form="tensorrt").ok
    fixed = identity(tmp_path, (name, "y", TensorProto.FLOAT, [2]))
    assert onnxsmith.bundle(fixed, tmp_path / "p", form="tensorrt").ok, "a fixed shape needs no profile"


def test_dimensions_without_a_name_have_a_way(tmp_path: Path) -> None:
    model = identity(tmp_path, ("x", "y", TensorProto.FLOAT, [None, "d1", 3]))
    result = onnxsmith.bundle(model, tmp_path / "o", form="tensorrt")
    (note,) = [one for one in result.report.part(Bundle).notes if "have no name" in one]
    assert "onnxsmith set-dim model/model.onnx x:0=d2 -o named.onnx" in note
    assert note in (tmp_path / "o" / "build.sh").read_text()
    assert note in (tmp_path / "o" / "README.md").read_text()


FAKE_TRT = """
import ctypes
memory = {}
class Logger:
    WARNING = 2
    def __init__(self, level): pass
class IOutputAllocator:
    def __init__(self): self.ready = True
class Context:
    def __init__(self): self.places, self.given, self.allocators = {}, {}, {}
    def set_input_shape(self, name, shape): self.given[name] = tuple(shape); return True
    def set_tensor_address(self, name, place): self.places[name] = place
    def set_output_allocator(self, name, one): assert one.ready; self.allocators[name] = one
    def get_tensor_shape(self, name): return (-1,) if name == "at" else self.given["x"]
    def execute_async_v3(self, stream):
        import numpy as np
        x = np.frombuffer(memory[self.places["x"]], np.float32, int(np.prod(self.given["x"]))).copy()
        at = np.flatnonzero(x).astype(np.int64)
        one = self.allocators["at"]
        one.reallocate_output_async("at", None, 8, 256, stream)  # too small at first, as an upper bound may be
        place = one.reallocate_output_async("at", None, at.nbytes, 256, stream)
        one.notify_shape("at", at.shape)
        for held, array in ((memory[place], at), (memory[self.places["y"]], -x)):
            ctypes.memmove(held, array.ctypes.data, array.nbytes)
        return True
class Engine:
    def create_execution_context(self): return Context()
    def get_tensor_dtype(self, name): return name
class Runtime:
    def __init__(self, logger): pass
    def deserialize_cuda_engine(self, data): return Engine()
def nptype(name):
    import numpy as np
    return np.int64 if name == "at" else np.float32
"""
FAKE_CUDA = """
import ctypes, itertools
import tensorrt
class cudaError_t: cudaSuccess = 0
class cudaMemcpyKind: cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost = 1, 2
count = itertools.count(1)
def cudaStreamCreate(): return 0, 7
def cudaStreamSynchronize(stream): return (0,)
def cudaMalloc(size):
    place = next(count); tensorrt.memory[place] = ctypes.create_string_buffer(size); return 0, place
def cudaFree(place): del tensorrt.memory[place]; return (0,)
def cudaMemcpyAsync(to, source, size, kind, stream):
    if kind == 1: ctypes.memmove(tensorrt.memory[to], source, size)
    else: ctypes.memmove(to, tensorrt.memory[source], size)
    return (0,)
"""


def test_the_runner_takes_shapes_that_depend_on_values(tmp_path: Path) -> None:
    """trt_model.py on a TensorRT that is played: an output of known shape, and one whose shape is known afterwards."""
    nodes = [
        helper.make_node("Neg", ["x"], ["y"]),
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Squeeze", ["places", "axis"], ["at"]),
    ]
    graph = helper.make_graph(
        nodes,
        "nonzero",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [
            helper.make_tensor_value_info("at", TensorProto.INT64, ["count"]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"]),
        ],
        [numpy_helper.from_array(np.array([0], np.int64), "axis")],
    )
    out = bundled(written(tmp_path, graph), tmp_path, "tensorrt")
    (out / "model.plan").write_bytes(b"plan")
    fakes = tmp_path / "fakes"
    (fakes / "cuda" / "bindings").mkdir(parents=True)
    (fakes / "tensorrt.py").write_text(FAKE_TRT)
    for name in ("cuda/__init__.py", "cuda/bindings/__init__.py"):
        (fakes / name).write_text("")
    (fakes / "cuda" / "bindings" / "runtime.py").write_text(FAKE_CUDA)
    words = [sys.executable, "-B", "verify_trt.py"]
    environment = {**os.environ, "PYTHONPATH": str(fakes)}
    done = subprocess.run(words, cwd=out, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal on 2 golden inputs" in done.stdout
    program = """
import numpy as np, tensorrt
from trt_model import TensorRTModel
model = TensorRTModel()
for values in ([0, 3, 0, 4], [0, 0], [1, 2, 3]):
    found = model.run({"x": np.array(values, np.float32)})
    assert found["at"].tolist() == np.flatnonzero(values).tolist(), found
    assert found["y"].tolist() == [-one for one in values]
assert not tensorrt.memory, "memory was not freed"
"""
    words = [sys.executable, "-B", "-c", program]
    done = subprocess.run(words, cwd=out, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_dtypes_that_tensorrt_lacks_are_refused(tmp_path: Path) -> None:
    assert refused(identity(tmp_path, ("a", "y", TensorProto.DOUBLE, ["n"])), tmp_path, "tensorrt") == (
        "bundle/not-for-form"
    )


def test_build_passes_options_on(tmp_path: Path) -> None:
    """build.sh with a trtexec that prints its arguments."""
    out = bundled(linear(tmp_path), tmp_path, "tensorrt", dim_ranges=("batch=1:4:16",))
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "trtexec"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    command = [out / "build.sh", "--builderOptimizationLevel=5"]
    said = subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=True)
    assert "--fp16`;" in (out / "README.md").read_text()  # named as an option that TensorRT 11 lacks
    assert "--fp16" not in (out / "build.sh").read_text()
    assert said.stdout.split() == [
        "--onnx=model/model.onnx",
        "--saveEngine=model.plan",
        "--minShapes=x:1x3",
        "--optShapes=x:4x3",
        "--maxShapes=x:16x3",
        "--builderOptimizationLevel=5",
    ]


# C++


def compiles(source: Path) -> None:
    words = ["c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", STUBS, "-x", "c++", source]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


@needs_compiler
@pytest.mark.parametrize("make", [linear, hostile, classifier])
def test_the_code_compiles(tmp_path: Path, make: Any) -> None:
    out = bundled(make(tmp_path), tmp_path, "cpp", clients={"onnxruntime": tmp_path})
    compiles(out / "verify.cpp")


@needs_compiler
def test_names_that_the_code_uses_itself(tmp_path: Path) -> None:
    names = ["Array", "Bytes", "Port", "std", "Ort", "values", "np", "Float32", "Any", "detail", "int", "Model"]
    model = identity(tmp_path, *[(name, f"{name}.", TensorProto.FLOAT, ["n"]) for name in names])
    compiles(bundled(model, tmp_path, "cpp", clients={"onnxruntime": tmp_path}) / "verify.cpp")
    pytest.importorskip("mypy")
    out = bundled(model, tmp_path, "python")
    words = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "model.py"]
    done = subprocess.run(words, cwd=out, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@needs_compiler
def test_the_tensorrt_header_compiles(tmp_path: Path) -> None:
    out = bundled(identity(tmp_path, ('a"b', "c\\d", TensorProto.FLOAT, [2])), tmp_path, "tensorrt")
    (tmp_path / "use.cpp").write_text(f'#include "{out / "trt_model.hpp"}"\nint main() {{ return 0; }}\n')
    compiles(tmp_path / "use.cpp")


def test_without_headers_nothing_is_claimed(tmp_path: Path) -> None:
    result = onnxsmith.bundle(linear(tmp_path), tmp_path / "o", form="cpp", clients={"onnxruntime": tmp_path})
    assert result.ok
    (check,) = checks(result.report).values()
    assert check.state == "not run"


@needs_headers
def test_the_program_runs(tmp_path: Path) -> None:
    numbers = [getattr(TensorProto, name.upper()) for name in cpp.Cpp.dtypes]
    (tmp_path / "other").mkdir()
    model = identity(tmp_path / "other", *[(f"x{kind}", f"y{kind}", kind, ["n", 2]) for kind in numbers])
    for number, path in enumerate((linear(tmp_path), hostile(tmp_path), model)):
        result = onnxsmith.bundle(path, tmp_path / f"out{number}", form="cpp", clients={"onnxruntime": ROOT})
        assert checks(result.report)["C++ program"].state == "equal"


@needs_headers
def test_a_changed_golden_number_fails_with_the_output(tmp_path: Path) -> None:
    out = bundled(linear(tmp_path), tmp_path, "cpp", clients={"onnxruntime": ROOT})
    file = out / "golden" / "0_output_0.bin"
    numbers = np.frombuffer(file.read_bytes(), "<f4") + np.float32(0.5)
    file.write_bytes(numbers.tobytes())
    content = type("Content", (), {"clients": {"onnxruntime": Path(ROOT)}, "model_bytes": 1000})()
    (check,) = cpp.Cpp().replay(content, out)
    assert check.state == "different"
    assert '"golden/0_output_0.bin" is not the file that was verified' in check.detail
