"""Recognises modules whose weights another library packed, and names the format if their export fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import several

_LIBRARIES = {
    "bitsandbytes": "bitsandbytes",
    "hqq": "HQQ",
    "optimum.quanto": "quanto",
    "quanto": "quanto",
    "auto_gptq": "GPTQ",
    "gptqmodel": "GPTQ",
    "awq": "AWQ",
    "autoawq": "AWQ",
    "aqlm": "AQLM",
    "eetq": "EETQ",
}
"""Maps packages whose linear layers hold packed weights to the names of their formats."""


@dataclass(frozen=True)
class Found:
    """A module with packed weights: its path, its class, the format, and how many modules are like it."""

    path: str
    kind: str
    form: str
    count: int


def find(module: torch.nn.Module) -> Found | None:
    """Returns the first module with packed weights, or None."""
    found = [(path, part, form) for path, part in module.named_modules() if (form := _form(part))]
    if not found:
        return None
    path, part, form = found[0]
    kind = type(part)
    return Found(path, f"{kind.__module__}.{kind.__qualname__}", form, len(found))


@contextmanager
def explained(module: torch.nn.Module) -> Iterator[None]:
    """Turns an error of the block into `export/packed-weights`, if the module holds packed weights."""
    try:
        yield
    except OnnxsmithError as error:
        found = find(module) if error.problem.id.startswith(("export/", "forward/")) else None
        if found is None:
            raise
        said = error.problem
        raise problem(
            "export/packed-weights",
            f"the weight of {found.path!r} ({found.kind}) is packed in the format of {found.form}"
            + (f", and {several(found.count - 1, 'weight')} more" if found.count > 1 else ""),
            where=found.path,
            why=f"the kernels of this layer compute with the packed weight, which a trace cannot follow: {said.what}",
            fix="convert the packed weights to floats first, with the lines of code that `onnxsmith explain "
            "export/packed-weights` prints; then `onnxsmith quantize net.onnx -o small.onnx --to int4`",
        ) from error


def note(module: torch.nn.Module, kinds: set[str]) -> str:
    """Returns the note that packed weights became floats in a graph that has nodes of these `kinds`; empty if they did
    not."""
    found = find(module)
    if found is None or "DequantizeLinear" in kinds:
        return ""
    return (
        f"the packed weights of {found.path!r} ({found.form}) are floats in the file: "
        "`onnxsmith quantize --to int4` packs them again"
    )


def _form(part: torch.nn.Module) -> str:
    package = type(part).__module__
    own = {**dict(part.named_parameters(recurse=False)), **dict(part.named_buffers(recurse=False)), **vars(part)}
    for name, form in _LIBRARIES.items():
        is_of_library = package == name or package.startswith(f"{name}.")
        if is_of_library and any(key in own for key in ("weight", "qweight", "W_q", "codes")):
            return form
    packed = own.get("qweight")
    if isinstance(packed, torch.Tensor) and packed.dtype == torch.int32 and "scales" in own:
        return "GPTQ or AWQ (qweight, scales)"
    return ""
