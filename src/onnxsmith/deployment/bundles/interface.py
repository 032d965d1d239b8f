"""Describes the inputs and outputs of a model as a JSON schema."""

from __future__ import annotations

from typing import Any

from onnxsmith.deployment.bundles.content import Content, NamedPort

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema(content: Content) -> dict[str, Any]:
    """Returns a JSON schema (draft 2020-12) of one call: `{"inputs": {name: tensor}, "outputs": {name: tensor}}`, where
    a tensor is `{"dtype": …, "shape": […], "data": […]}`.

    A symbolic dimension refers to its definition under `$defs`, with its declared range. A schema cannot require equal
    sizes for equal names, so the runners check this.
    """
    dims = {f"dim:{name}": _dim(content, name) for name in content.symbols}
    return {
        "$schema": DRAFT,
        "title": content.title,
        "type": "object",
        "properties": {
            "inputs": _side(content.inputs, required=[port.name for port in content.inputs if not port.optional]),
            "outputs": _side(content.outputs, required=[port.name for port in content.outputs]),
        },
        "required": ["inputs"],
        "additionalProperties": False,
        "$defs": dims,
    }


def _side(ports: tuple[NamedPort, ...], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {port.name: _port(port) for port in ports},
        "required": required,
        "additionalProperties": False,
    }


def _port(port: NamedPort) -> dict[str, Any]:
    described: dict[str, Any] = {"x-identifier": port.identifier, "x-onnx-type": str(port.port)}
    if port.kind != "tensor":
        return {**described, "description": f"{port.kind} of {port.dtype}"}
    shape: dict[str, Any] = {"type": "array"}
    if port.shape is None:
        shape["items"] = {"type": "integer", "minimum": 0}
    else:
        shape |= {"prefixItems": [_size(port, dim) for dim in port.shape], "items": False}
        shape |= {"minItems": len(port.shape), "maxItems": len(port.shape)}
    return {
        **described,
        "type": "object",
        "properties": {"dtype": {"const": port.dtype}, "shape": shape, "data": {"type": "array"}},
        "required": ["dtype", "shape"],
    }


def _size(port: NamedPort, dim: int | str | None) -> dict[str, Any]:
    if isinstance(dim, int):
        return {"const": dim}
    if dim is not None and dim in (port.checked_shape or ()):
        return {"$ref": "#/$defs/dim:" + _pointer(dim)}
    expression = {"x-expression": dim} if dim is not None else {}
    return {"type": "integer", "minimum": 0, **expression}


def _dim(content: Content, name: str) -> dict[str, Any]:
    held = content.ranges.get(name)
    if held is None:
        return {"type": "integer", "minimum": 0, "description": f"the size {name}; no range was declared"}
    return {"type": "integer", "minimum": held.least, "maximum": held.most, "x-usual": held.usual}


def _pointer(text: str) -> str:
    """Returns a name inside a JSON pointer (RFC 6901) in a URI fragment."""
    from urllib.parse import quote

    return quote(text.replace("~", "~0").replace("/", "~1"))
