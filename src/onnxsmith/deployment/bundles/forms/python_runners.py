"""`--for python`, `tensorrt`, `triton`: forms with a Python runner."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from onnxsmith.base.folders import OwnPath
from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.base.words import pasted
from onnxsmith.deployment.bundles import clients, templates
from onnxsmith.deployment.bundles.content import Content, NamedPort
from onnxsmith.deployment.bundles.dimension_ranges import nameless, naming
from onnxsmith.deployment.bundles.forms.base import NUMBERS, Form, not_for_form
from onnxsmith.deployment.bundles.identifiers import identifiers
from onnxsmith.deployment.bundles.tasks.base import PICTURES, TEXTS, task

_RUNTIMES = ("onnxruntime", "onnxruntime-gpu")


def write_runner(content: Content, folder: OwnPath) -> None:
    """Writes the Python files: model.py, golden.py, verify.py, processing.py if the task has one, requirements.txt."""
    values = content.values()
    templates.write(folder, "model.py", "python/model.py", **values)
    templates.write(folder, "golden.py", "shared/golden.py", **values)
    templates.write(folder, "verify.py", "python/verify.py", **values)
    task(content.task).write_python(content, folder)
    runtime = _runtime()
    lines = ["numpy>=1.26", f"onnxruntime>={(runtime and clients.version(runtime)) or '1.20'}"]
    lines += [f"{package}>={clients.version(package) or '0'}" for package in task(content.task).packages]
    templates.write(folder, "requirements.txt", "python/requirements.txt", requirements=lines)


def replay_python(content: Content, folder: Path) -> BundleCheck:
    """Runs verify.py in a fresh interpreter that can import only numpy, onnxruntime and the packages that the task
    needs."""
    name, runtime = "python runner", _runtime()
    if runtime is None:
        return BundleCheck(name, "not run", "onnxruntime is not installed")
    try:
        with clients.bare_python("numpy", runtime, *task(content.task).packages) as (_, words):
            done = clients.run(
                [*words, folder / "verify.py", "--json"],
                folder=folder,
                memory=clients.memory_for(content.model_bytes),
            )
    except LookupError as missing:
        return BundleCheck(name, "not run", f"{missing.args[0]} is not installed")
    more = "".join(f", {package}" for package in task(content.task).packages)
    said = f"python {platform.python_version()} with numpy, {runtime} {clients.version(runtime)}{more} only"
    return clients.replayed(name, said, done, content)


def _runtime() -> str | None:
    return next((name for name in _RUNTIMES if clients.version(name) is not None), None)


class Python(Form):
    """Writes a folder with `model.py`, a class with the model's inputs as typed keyword arguments."""

    client = "Python with numpy and onnxruntime"
    dtypes = (*NUMBERS, "string", "bfloat16")
    kinds = ("tensor", "sequence", "map", "optional")
    tasks = ("tensors", *PICTURES, *TEXTS)

    def write(self, content: Content, folder: OwnPath) -> None:
        write_runner(content, folder)
        templates.write(folder, "README.md", "python/README.md", **content.values())

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        return [replay_python(content, folder)]


_PROFILE = ("min", "opt", "max")
_NAMED = r"[^,']+"
"""Matches the names that trtexec can read in a shape profile (samples/common/sampleOptions.cpp of TensorRT 10). trtexec
splits the profile at commas, then each part at single quotes. Inside single quotes, colons and blanks belong to the
name."""
_RANGE = "=MIN:OPT:MAX"
_PLAIN = r"[\w./-]+"
"""Matches the names that need no quotes in a shape profile."""


class Tensorrt(Form):
    """Writes build.sh, which calls trtexec; trt_model.py and trt_model.hpp, which run the plan; and a Python runner for
    the model."""

    client = "TensorRT"
    dtypes = ("float", "float16", "int8", "int32", "int64", "uint8", "bool")
    tasks = ("tensors", *PICTURES, *TEXTS)

    def refuse(self, content: Content) -> None:
        super().refuse(content)
        for port in content.inputs:
            if port.shape is None:
                raise not_for_form(self.id(), f"the number of dimensions of {port.name!r} is unknown", f"{port.port}")
            if _is_dynamic(port) and not re.fullmatch(_NAMED, port.name):
                new = identifiers([port.name])[port.name]
                raise not_for_form(
                    self.id(),
                    f"trtexec cannot name the dynamic input {port.name!r} in a shape profile",
                    f"{port.port}",
                    why="trtexec splits a profile at each comma, and reads single quotes as the ends of a name",
                    fix=f"`onnxsmith rename {content.file} {pasted(port.name)} {new} -o renamed.onnx`",
                )

    def notes(self, content: Content) -> list[str]:
        return [*super().notes(content), *notes(content)]

    def write(self, content: Content, folder: OwnPath) -> None:
        values = {
            **content.values(),
            "options": options(content),
            "profile": {port.name: shapes(content, port) for port in content.inputs if _is_dynamic(port)},
            "notes": notes(content),
        }
        write_runner(content, folder)
        for name in ("build.sh", "trt_model.py", "trt_model.hpp", "verify_trt.py", "README.md"):
            templates.write(folder, name, f"tensorrt/{name}", **values)
        (folder / "build.sh").chmod(0o755)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        why = (
            "building and running a plan needs an NVIDIA GPU and TensorRT; on such a machine, run build.sh and "
            "verify_trt.py"
        )
        return [
            replay_python(content, folder),
            *(BundleCheck(name, "not run", why) for name in ("trtexec line", "TensorRT runners")),
        ]


def options(content: Content) -> list[str]:
    """Returns the options of trtexec for the shape profile; none for a model of fixed shapes."""
    dynamic = [port for port in content.inputs if _is_dynamic(port)]
    found = []
    for which in _PROFILE if dynamic else ():
        parts = [f"{_quoted(port.name)}:{shapes(content, port)[which]}" for port in dynamic]
        found.append(_word(f"--{which}Shapes={','.join(parts)}"))
    return found


def _quoted(name: str) -> str:
    """Quotes a name as trtexec reads it."""
    return name if re.fullmatch(_PLAIN, name) else f"'{name}'"


def _word(text: str) -> str:
    """Quotes a text as one word of a shell, in double quotes if possible."""
    return f'"{text}"' if "'" in text and not re.search(r'["$`\\!]', text) else pasted(text)


def shapes(content: Content, port: NamedPort) -> dict[str, str]:
    """Returns the least, usual and largest shape of an input, as trtexec writes them: `4x3x224x224`."""
    found: dict[str, str] = {}
    for at, which in enumerate(_PROFILE):
        sizes = []
        for axis, dim in enumerate(port.shape or ()):
            sizes.append(dim if isinstance(dim, int) else _sizes(content, port, dim, axis)[at])
        found[which] = "x".join(map(str, sizes))
    return found


def notes(content: Content) -> list[str]:
    """Returns notes about the profile: dimensions without a declared range."""
    free = [dim for port in content.inputs for dim in port.shape or () if isinstance(dim, str)]
    free = [dim for dim in dict.fromkeys(free) if dim not in content.ranges]
    found = []
    if free:
        names = ", ".join(ascii(name) for name in free)
        found.append(
            f"No range was declared for {names}: the profile has the sizes of the golden data. Declare them: "
            f"{' '.join(f'--dim {pasted(ascii(name)[1:-1] + _RANGE)}' for name in free)}."
        )
    places = nameless(content.signature)
    if places:
        where = ", ".join(f"axis {axis} of {name!a}" for name, axis in places)
        command, new = naming(content.signature, content.model_file)
        found.append(
            f"These dimensions have no name, so the profile has the sizes of the golden data: {where}. Name them with "
            f"{' '.join(command.split())}, and bundle named.onnx with --dim {new}{_RANGE}."
        )
    return found


def _sizes(content: Content, port: NamedPort, dim: str | None, axis: int) -> tuple[int, int, int]:
    """Returns the least, usual and largest declared size of a dimension. Without a declaration, returns the least,
    first and largest size in the golden data."""
    if dim in content.ranges:
        held = content.ranges[str(dim)]
        return held.least, held.usual, held.most
    values = [case.inputs.get(port.name) for case in content.cases]
    seen = [int(value.shape[axis]) for value in values if value is not None and not isinstance(value, list)]
    return (min(seen), seen[0], max(seen)) if seen else (1, 1, 1)


def _is_dynamic(port: NamedPort) -> bool:
    return not port.optional and any(not isinstance(dim, int) for dim in port.shape or ())


_TYPES = {
    "bool": "TYPE_BOOL", "uint8": "TYPE_UINT8", "uint16": "TYPE_UINT16", "uint32": "TYPE_UINT32",
    "uint64": "TYPE_UINT64", "int8": "TYPE_INT8", "int16": "TYPE_INT16", "int32": "TYPE_INT32", "int64": "TYPE_INT64",
    "float16": "TYPE_FP16", "float": "TYPE_FP32", "double": "TYPE_FP64", "string": "TYPE_STRING",
}  # fmt: skip
"""Maps ONNX dtypes to data types of a model configuration (Triton's model_config.proto)."""
_PROTOCOL = {**{name: kind.removeprefix("TYPE_") for name, kind in _TYPES.items()}, "string": "BYTES"}
"""Maps ONNX dtypes to data types of Triton's HTTP protocol."""


class Triton(Form):
    """Writes a model repository (config.pbtxt and 1/model.onnx), a client that replays the golden data, and a Python
    runner."""

    client = "Triton Inference Server"
    dtypes = (*NUMBERS, "string")

    tasks = ("tensors", *PICTURES, *TEXTS)

    def model_file(self, name: str) -> str:
        return f"model_repository/{name}/1/model.onnx"

    def refuse(self, content: Content) -> None:
        super().refuse(content)
        for port in (*content.inputs, *content.outputs):
            if port.shape is None:
                raise not_for_form(self.id(), f"the number of dimensions of {port.name!r} is unknown", f"{port.port}")
        if not content.inputs:
            raise not_for_form(self.id(), "it has no inputs", content.title)

    def write(self, content: Content, folder: OwnPath) -> None:
        most, why = _batch(content)
        ports = (*content.inputs, *content.outputs)
        values = {
            **content.values(),
            "types": _TYPES,
            "max_batch": most,
            "why_no_batch": why,
            "declared": bool(content.ranges),
            "dims": {port.name: _dims(port, batched=most > 0) for port in ports},
            "dtypes": {port.name: _PROTOCOL[port.dtype] for port in content.inputs},
        }
        served = OwnPath(folder / "model_repository" / content.called)
        served.mkdir(parents=True, exist_ok=True)
        templates.write(served, "config.pbtxt", "triton/config.pbtxt", **values)
        templates.write(folder, "client.py", "triton/client.py", **values)
        write_runner(content, folder)
        templates.write(folder, "README.md", "triton/README.md", **values)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        why = "no Triton server was found on this machine; client.py replays the golden data against a server"
        return [replay_python(content, folder), BundleCheck("model repository", "not run", why)]


def _batch(content: Content) -> tuple[int, str]:
    """Returns the largest batch; 0 with a reason if there is no batch. Triton counts a first dimension as the batch
    only if every input and output has it."""
    ports = (*content.inputs, *content.outputs)
    firsts = {port.shape[0] if port.shape else None for port in ports}
    (first, *others) = firsts
    if others or not isinstance(first, str):
        return 0, "the first dimension is not one batch of every input and output"
    held = content.ranges.get(first)
    if held is None:
        return 0, "no largest batch was declared (--dim)"
    if held.least > 1:
        return 0, f"the least declared batch is {held.least}, but the server may send a single request"
    return held.most, ""


def _dims(port: NamedPort, *, batched: bool) -> list[int]:
    """Returns the dimensions for a model configuration, with -1 for any size. If `batched`, leaves out the batch."""
    dims = [dim if isinstance(dim, int) else -1 for dim in port.shape or ()]
    return dims[1:] if batched else dims
