"""Writes the bundle of `--for triton`: a model repository for Triton Inference Server."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.deployment.bundles import python_runner, templates
from onnxsmith.deployment.bundles.content import Content, NamedPort
from onnxsmith.deployment.bundles.forms.base import NUMBERS, Form, not_for_form
from onnxsmith.deployment.bundles.tasks.base import PICTURES, TEXTS

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

    def write(self, content: Content, folder: Path) -> None:
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
        config = folder / "model_repository" / content.called / "config.pbtxt"
        templates.write(config, "triton/config.pbtxt", **values)
        templates.write(folder / "client.py", "triton/client.py", **values)
        python_runner.write_runner(content, folder)
        templates.write(folder / "README.md", "triton/README.md", **values)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        why = "no Triton server is at hand; client.py replays the golden data against one"
        return [python_runner.replay_python(content, folder), BundleCheck("model repository", "not run", why)]


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
        return 0, "no largest batch was declared (--dim-range)"
    if held.least > 1:
        return 0, f"the least batch that was declared is {held.least}, and the server may send one request alone"
    return held.most, ""


def _dims(port: NamedPort, *, batched: bool) -> list[int]:
    """Returns the dimensions for a model configuration, with -1 for any size. If `batched`, leaves out the batch."""
    dims = [dim if isinstance(dim, int) else -1 for dim in port.shape or ()]
    return dims[1:] if batched else dims
