"""Inputs that a person gives for a model file, put together into feeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnxsmith.feeds.files import IMAGES, read_image, read_npz
from onnxsmith.feeds.generate import Feed, Generator
from onnxsmith.feeds.spec import InputSpec, parse
from onnxsmith.model.load import load
from onnxsmith.model.signature import Port, Signature, signature
from onnxsmith.problem import problem


def values(texts: Sequence[str], interface: Signature) -> dict[str, Any]:
    """Arrays by input name from `--input` texts; one without a name is for the first input not yet given.

    Raises:
        OnnxsmithError: `input/…` for what cannot be read; `run/unknown-input` for a name that the model does not have.
    """
    found: dict[str, Any] = {}
    for text in texts:
        found.update(_values(parse(text), interface, found))
    return found


def feeds(texts: Sequence[str], model: str | Path) -> tuple[Feed, ...]:
    """One feed from `--input` texts, or none when there are none."""
    if not texts:
        return ()
    return (Feed("the given input", {}, values(texts, signature(load(model)))),)


def sizes(texts: Sequence[str]) -> dict[str, int]:
    """Sizes of symbolic dimensions from `--dim batch=1` texts.

    Raises:
        OnnxsmithError: `input/syntax`.
    """
    found: dict[str, int] = {}
    for text in texts:
        name, equals, size = text.rpartition("=")
        if not equals or not size.strip().isdigit():
            raise problem("input/syntax", f"{text!r} does not give a dimension a size", fix="write --dim batch=1")
        found[name.strip()] = int(size)
    return found


def _values(spec: InputSpec, interface: Signature, found: dict[str, Any]) -> dict[str, Any]:
    if spec.path is not None and spec.path.suffix == ".npz" and not spec.name:
        return read_npz(spec.path)
    port = _port(spec, interface, found)
    if spec.path is None:
        return {port.name: _filled(port, spec)}
    if spec.path.suffix.lower() in IMAGES:
        return {port.name: read_image(spec.path, port)}
    arrays = read_npz(spec.path)
    if len(arrays) != 1:
        raise problem(
            "input/syntax",
            f"the file holds {len(arrays)} arrays, one is needed for {port.name!r}",
            where=str(spec.path),
            fix="give it without a name: --input inputs.npz takes every array by its own",
        )
    return {port.name: next(iter(arrays.values()))}


def _port(spec: InputSpec, interface: Signature, found: dict[str, Any]) -> Port:
    ports = {port.name: port for port in interface.inputs}
    if spec.name in ports:
        return ports[spec.name]
    free = [port for port in interface.required() if port.name not in found]
    if not spec.name and free:
        return free[0]
    raise problem(
        "run/unknown-input",
        f"the model has no input {spec.name!r}" if spec.name else "there is an input too many",
        fix=f"its inputs are: {', '.join(f'{name} {port}' for name, port in ports.items()) or 'none'}",
    )


def _filled(port: Port, spec: InputSpec) -> Any:
    shaped = Port(port.name, spec.dtype, spec.shape)
    return Generator(Signature((shaped,), ())).feed({}).values[port.name]
