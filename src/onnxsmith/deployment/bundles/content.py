"""Describes the content of a bundle as plain data, which every form writes in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxsmith.deployment.bundles.dimension_ranges import Range
from onnxsmith.deployment.bundles.golden import Case
from onnxsmith.deployment.bundles.identifiers import identifiers
from onnxsmith.deployment.bundles.processing_parameters import Parameters
from onnxsmith.graph.structure.signature import Port, Signature, is_symbol

NUMPY = {
    "float": "float32",
    "double": "float64",
    **{name: name for name in ("float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "bool": "bool",
    "string": "object",
    "bfloat16": "uint16",
}
"""Maps ONNX dtypes to numpy dtypes in a bundle. numpy has no bfloat16, so a bundle takes and returns its 16 bits as
uint16."""
SIZES = {"double": 8, "int64": 8, "uint64": 8, "float": 4, "int32": 4, "uint32": 4, "float16": 2, "bfloat16": 2,
         "int16": 2, "uint16": 2, "int8": 1, "uint8": 1, "bool": 1}  # fmt: skip
"""Maps dtypes to the bytes of one element."""


@dataclass(frozen=True)
class NamedPort:
    """Describes an input or output, with its identifier in generated code."""

    port: Port
    identifier: str

    @property
    def name(self) -> str:
        return self.port.name

    @property
    def dtype(self) -> str:
        return self.port.dtype

    @property
    def numpy(self) -> str:
        return NUMPY.get(self.port.dtype, "object")

    @property
    def kind(self) -> str:
        return self.port.kind

    @property
    def optional(self) -> bool:
        """Whether the model runs without this input."""
        return self.port.default or self.port.kind == "optional"

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """Returns the sizes, the names of symbolic dimensions, and None for dimensions without a name."""
        if self.port.shape is None:
            return None
        own = {f"{self.name}.{axis}": axis for axis in range(len(self.port.shape))}
        return tuple(None if own.get(str(dim)) == axis else dim for axis, dim in enumerate(self.port.shape))

    @property
    def checked_shape(self) -> tuple[int | str | None, ...] | None:
        """Returns the shape without expressions such as `2*N`, which generated code does not compute."""
        if self.shape is None:
            return None
        return tuple(None if isinstance(dim, str) and not is_symbol(dim) else dim for dim in self.shape)

    @property
    def shown(self) -> str:
        """Returns the dtype and shape for a reader: `float32[batch, 3, x.2]`. A dimension without a name is called by
        its port and axis."""
        if self.kind != "tensor" or self.port.shape is None:
            return str(self.port)
        dims = ", ".join(map(str, self.port.shape))
        return (
            f"{NUMPY.get(self.dtype, self.dtype) if self.dtype not in ('string', 'bfloat16') else self.dtype}[{dims}]"
        )


@dataclass(frozen=True)
class Variant:
    """Describes a variant of a model package: a model file for one execution provider.

    `name` is the short name of the provider (`cuda`), `provider` its name in onnxruntime. `file` is the user's file;
    None for the given model. `folder` holds the copy in the bundle, as `model.onnx`. `result` says how the variant
    compares with the given model, and `table` what the published table of the provider says about its nodes. `unsure`
    says why the comparison proves too little.
    """

    name: str
    provider: str
    file: Path | None
    folder: str
    result: str = ""
    table: str = ""
    unsure: str = ""

    @property
    def golden(self) -> str:
        """Returns the folder of the bundle that holds the variant's folder `golden`. The given model has the folder of
        the bundle."""
        return "." if self.file is None else self.folder

    @property
    def said(self) -> str:
        """Returns both results as one sentence without its full stop."""
        return "; ".join(text for text in (self.result or f"NOT SURE: {self.unsure}", self.table) if text)


@dataclass(frozen=True)
class Content:
    """Describes everything that a form writes.

    `called` is the name of the bundle as a folder, a package and a model in a server. `name` is its form in generated
    code, followed by `_model`. `file` is the model in a command. `model_file` is the model's path inside the folder;
    `data_files` are its external data, relative to the folder of the model. `last_operators` maps each output to the
    operator that computes it. `clients` are folders that the user named, such as `onnxruntime`. `variants` are the
    variants of a model package.
    """

    name: str
    called: str
    title: str
    file: str
    signature: Signature
    model_file: str
    data_files: tuple[str, ...]
    model_bytes: int
    opset: int
    ranges: Mapping[str, Range]
    task: str
    parameters: Parameters
    licence: str
    made_with: str
    last_operators: Mapping[str, str] = field(default_factory=dict)
    cases: tuple[Case, ...] = ()
    clients: Mapping[str, Path] = field(default_factory=dict)
    variants: tuple[Variant, ...] = ()

    @property
    def inputs(self) -> tuple[NamedPort, ...]:
        return _named(self.signature.inputs)

    @property
    def outputs(self) -> tuple[NamedPort, ...]:
        return _named(self.signature.outputs)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Returns the named symbolic dimensions of inputs and outputs, in order of first appearance."""
        ports = (*self.inputs, *self.outputs)
        return tuple(dict.fromkeys(d for port in ports for d in port.checked_shape or () if isinstance(d, str)))

    @property
    def allowed(self) -> dict[str, float]:
        """Returns the largest allowed difference of each output over all cases, for outputs that have an allowed
        difference."""
        found: dict[str, float] = {}
        for case in self.cases:
            for name, most in case.tolerances.items():
                if most is not None:
                    found[name] = max(most, found.get(name, 0.0))
        return found

    def values(self) -> dict[str, Any]:
        """Returns the values for templates."""
        return {"content": self, "p": self.parameters}


def _named(ports: tuple[Port, ...]) -> tuple[NamedPort, ...]:
    called = identifiers(port.name for port in ports)
    return tuple(NamedPort(port, called[port.name]) for port in ports)
