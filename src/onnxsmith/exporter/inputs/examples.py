"""Makes example inputs from `--input`: `x=float32[1,1,224,224]`, or a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from onnxsmith.base.problem import problem
from onnxsmith.base.words import in_place_of, pasted
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs.forward_parameters import signature
from onnxsmith.runtimes.torch_eager import to_tensor
from onnxsmith.verification.inputs.user_inputs import is_array, twice

if TYPE_CHECKING:
    from onnxsmith.verification.inputs.spec import InputSpec


def with_inputs(model: TorchModel, given: Sequence[str]) -> TorchModel:
    """Returns the model with example inputs from `--input`; inputs that are not named keep the factory's example.

    Raises:
        OnnxsmithError: `input/…` if an input cannot be read; `export/unknown-input` if forward has no such argument.
    """
    if isinstance(given, str):
        raise problem(
            "export/arguments",
            "`inputs` has to be a list of texts, not one text",
            where="inputs",
            fix=f'write inputs=["{given}"]',
        )
    if is_array(given) or not all(isinstance(text, str) for text in given):
        raise problem(
            "export/arguments",
            "`inputs` has to be texts as on the command line, not tensors",
            where="inputs",
            fix="give example tensors as in a call of the module: args=(x,), kwargs={...}",
        )
    if not given:
        return model
    from onnxsmith.verification.inputs.spec import parse

    tensors: dict[str, Any] = {}
    for text in given:
        found = _tensors(parse(text, example=True))
        if again := [name for name in found if name in tensors]:
            raise twice(again[0] or "the first", given)
        tensors.update(found)
    parameters = signature(model.module.forward).parameters
    plain = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    unnamed = tensors.pop("", None)
    if unnamed is not None and plain:
        tensors.setdefault(plain[0], unnamed)
    open_ended = any(p.kind == p.VAR_KEYWORD for p in parameters.values())
    unknown = [name for name in tensors if name not in parameters and not open_ended]
    if unknown:
        raise problem(
            "export/unknown-input",
            f"forward has no argument {unknown[0]!r}",
            where=f"forward{signature(model.module.forward)}",
            fix=in_place_of(unknown[0], list(parameters))
            if parameters
            else "leave --input out: forward has no arguments",
        )
    kept = dict(zip(plain, model.args, strict=False))
    values = {**kept, **dict(model.kwargs), **tensors}
    extra = model.args[len(plain) :]
    args = []
    for name in plain:
        if name not in values:
            break
        args.append(values.pop(name))
    return TorchModel(model.module, (*args, *extra), values, notes=model.notes, names=model.names, limits=model.limits)


def _tensors(spec: InputSpec) -> dict[str, Any]:
    if spec.path is None:
        return {spec.name: _example(spec)}
    if spec.path.suffix not in (".npz", ".npy"):
        raise problem(
            "input/syntax",
            "example inputs of an export are shapes or arrays, not pictures",
            where=str(spec.path),
            fix=f"give --input {pasted(spec.name or 'x')}=float32[1,3,224,224], or an .npz with the array",
        )
    from onnxsmith.verification.inputs.input_files import read_npz

    arrays = read_npz(spec.path)
    if spec.name and len(arrays) == 1:
        arrays = {spec.name: next(iter(arrays.values()))}
    return {name: to_tensor(array) for name, array in arrays.items()}


def _example(spec: InputSpec) -> torch.Tensor:
    """Generates seeded values: floats uniform in 0..1; integers 0 and 1, which are valid indices of most tables."""
    dtype = {"float": "float32", "double": "float64"}.get(spec.dtype, spec.dtype)
    if not hasattr(torch, dtype):
        raise problem("input/syntax", f"torch has no dtype {spec.dtype!r}", fix="use float32, int64, bool, …")
    kind: torch.dtype = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(0)
    shape = spec.shape or ()
    if kind.is_floating_point or kind.is_complex:
        return torch.rand(shape, generator=generator).to(kind)
    return torch.randint(0, 2, shape, generator=generator).to(kind)
