"""Turns the inputs that a user gives for a model file into feeds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import dim_ranges
from onnxsmith.graph.structure.dim_ranges import Size
from onnxsmith.graph.structure.signature import Port, Signature, signature
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.size_proposals import of_feed

if TYPE_CHECKING:
    from onnxsmith.verification.inputs.spec import InputSpec

Inputs = Mapping[str, Any] | Sequence[str] | Iterable[Mapping[str, Any] | Feed]
"""Describes inputs as a caller gives them: arrays by name, texts as on the command line, or an iterable with one
mapping of arrays by name for each input."""


def values(texts: Sequence[str], interface: Signature) -> dict[str, Any]:
    """Returns arrays by input name from `--input` texts, for a run on one input; see `several`.

    Raises:
        OnnxsmithError: `input/…` for a text that cannot be read, `input/twice` if a name is given twice;
            `run/unknown-input` for a name that the model does not have.
    """
    found = several(texts, interface)
    if len(found) > 1:
        raise twice(next(name for name in found[0] if name in found[1]), texts)
    return found[0] if found else {}


def several(texts: Sequence[str], interface: Signature) -> list[dict[str, Any]]:
    """Returns a list of inputs, each as arrays by name, from `--input` texts in their order.

    A repeated name begins the next input: `a.npz b.npz` are two inputs, as are `x=1.npy x=2.npy`. An input's missing
    values are copied from the input before. A text without a name is for the first graph input without a value.
    """
    return filled([one.values for one in _parts(texts, interface)])


def filled(parts: Sequence[Mapping[str, Any]], not_copied: Collection[str] = ()) -> list[dict[str, Any]]:
    """Fills each input's missing values from the input before it, except for the inputs in `not_copied`."""
    found: list[dict[str, Any]] = []
    for one in parts:
        before = found[-1] if found else {}
        found.append({**{name: value for name, value in before.items() if name not in not_copied}, **one})
    return found


def feeds(texts: Sequence[str], model: str | Path | Signature, *, state: Collection[str] = ()) -> tuple[Feed, ...]:
    """Returns one feed for each input that the `--input` texts give; none if there are no texts. An `.npz` with several
    samples gives as many inputs. The graph inputs in `state` may be missing, and are never copied.

    Raises:
        OnnxsmithError: `input/incomplete` if a value of an input is missing.
    """
    if not is_array(texts) and not texts:
        return ()
    interface = model if isinstance(model, Signature) else signature(load(model))
    parts = _parts(texts, interface, in_samples=True)
    found = filled([one.values for one in parts], state)
    made = []
    for number, (part, held) in enumerate(zip(parts, found, strict=True), 1):
        label = f"given input {number} of {len(found)}" if len(found) > 1 else "the given input"
        if part.said and len(found) > 1:
            label += f" ({', '.join(part.said)})"
        check_complete(label, part.values, held, interface, state)
        made.append(Feed(label, of_feed(interface, held), held))
    return tuple(made)


def inputs(given: Inputs, interface: Signature, *, state: Collection[str] = ()) -> tuple[Feed, ...]:
    """Returns one feed from arrays by name or from texts, or one feed for each item of any other iterable. `state` has
    the meaning that it has in `feeds`. Missing values of an iterable's items are not copied."""
    if isinstance(given, Mapping):
        parts = samples(dict(given), interface) if given else []
        labels = _numbered(len(parts))
        return tuple(Feed(label, {}, held) for label, held in zip(labels, filled(parts, state), strict=True))
    if is_array(given):
        raise unnamed(interface)
    items: list[Any] = [given] if isinstance(given, str) else list(given)
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) == len(items):
        return feeds(texts, interface, state=state)
    if not all(isinstance(item, Feed | Mapping) for item in items):
        raise unnamed(interface)
    return tuple(
        item if isinstance(item, Feed) else Feed(f"given input {number}", {}, dict(item))
        for number, item in enumerate(items, 1)
    )


def _numbered(count: int) -> list[str]:
    return ["the given input"] if count == 1 else [f"given input {number} of {count}" for number in range(1, count + 1)]


def is_array(given: Any) -> bool:
    """Whether `given` is an array or a library's tensor, not a collection of inputs."""
    return hasattr(given, "__array__") or hasattr(given, "__dlpack__")


def unnamed(interface: Signature) -> OnnxsmithError:
    """Returns the error that values were given without the names of their inputs."""
    names = [port.name for port in interface.required()]
    example = ", ".join(f'"{name}": array' for name in names) or '"x": array'
    return problem(
        "input/unnamed",
        "values are given without the names of their inputs",
        where="the argument inputs",
        why=f"the model has the inputs {', '.join(names)}" if names else "the model has no inputs that need a value",
        fix=f"write inputs={{{example}}}",
    )


def twice(name: str, texts: Sequence[str]) -> OnnxsmithError:
    """Returns the error that a name was given twice to a command that takes one input."""
    return problem(
        "input/twice",
        f"input {name!r} is given twice",
        where=" ".join(f"--input {text}" for text in texts),
        why="this command uses a single value, and cannot decide between the two values",
        fix="leave one of them out",
    )


def sizes(given: dim_ranges.Asked) -> dict[str, Size]:
    """Returns the sizes and ranges of symbolic dimensions by name, from `--dim` texts or from a mapping.

    Raises:
        OnnxsmithError: `input/syntax`, `input/size-range`.
    """
    return dim_ranges.read(given)


@dataclass
class _Part:
    """Holds the values and files that the texts give for one input."""

    values: dict[str, Any] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


def _parts(texts: Sequence[str], interface: Signature, *, in_samples: bool = False) -> list[_Part]:
    """Returns the inputs that the texts give. Each input has only the values of its own texts."""
    from onnxsmith.verification.inputs.spec import parse

    own: list[_Part] = []
    first = 0
    """Numbers the first input of the last archive. A later value that no sample of this archive has is for all
    samples."""
    for text in _texts(texts, interface):
        spec = parse(text)
        held = own[-1].values if own else {}
        if own and not spec.name and not _is_archive(spec) and not _free(interface, held):
            own.append(_Part())
            held = {}
        new = _values(spec, interface, held)
        several = samples(new, interface) if in_samples else [new]
        if (
            len(several) == 1
            and own
            and len(own) - first > 1
            and not any(new.keys() & p.values.keys() for p in own[first:])
        ):
            own[first].values |= new
            continue
        for number, one in enumerate(several, 1):
            if not own or one.keys() & own[-1].values.keys():
                own.append(_Part())
            if number == 1:
                first = len(own) - 1
            own[-1].values |= one
            if spec.path is not None:
                own[-1].said.append(spec.path.name + (f", sample {number}" if len(several) > 1 else ""))
    return own


def _texts(given: Sequence[str], interface: Signature) -> Sequence[str]:
    """Returns the texts as a sequence; a single text becomes a sequence of one."""
    if isinstance(given, str):
        return (given,)
    if is_array(given) or not all(isinstance(one, str) for one in given):
        raise unnamed(interface)
    return given


def _is_archive(spec: InputSpec) -> bool:
    """Whether the text names a file whose arrays have names."""
    return spec.path is not None and spec.path.suffix == ".npz" and not spec.name


def _free(interface: Signature, found: dict[str, Any]) -> list[Port]:
    """Returns the inputs that have no value yet."""
    return [port for port in interface.required() if port.name not in found]


def _values(spec: InputSpec, interface: Signature, found: dict[str, Any]) -> dict[str, Any]:
    from onnxsmith.verification.inputs.input_files import read_npz

    if spec.path is not None and _is_archive(spec):
        return read_npz(spec.path)
    port = _port(spec, interface, found)
    if spec.path is None:
        return {port.name: _filled(port, spec)}
    from onnxsmith.verification.inputs.input_files import IMAGES

    if spec.path.suffix.lower() in IMAGES:
        from onnxsmith.verification.inputs.input_files import read_image

        return {port.name: read_image(spec.path, port)}
    arrays = read_npz(spec.path)
    if len(arrays) != 1:
        raise problem(
            "input/syntax",
            f"the file has {len(arrays)} arrays, but input {port.name!r} takes one",
            where=str(spec.path),
            fix="give the file without a name: --input inputs.npz uses the names in the file",
        )
    return {port.name: next(iter(arrays.values()))}


def _port(spec: InputSpec, interface: Signature, found: dict[str, Any]) -> Port:
    ports = {port.name: port for port in interface.inputs}
    if spec.name in ports:
        return ports[spec.name]
    free = _free(interface, found)
    if not spec.name and free:
        return free[0]
    raise problem(
        "run/unknown-input",
        f"the model has no input {spec.name!r}" if spec.name else "one input too many was given",
        fix=f"its inputs are: {', '.join(f'{name} {port}' for name, port in ports.items()) or 'none'}",
    )


def _filled(port: Port, spec: InputSpec) -> Any:
    shaped = Port(port.name, spec.dtype, spec.shape)
    return Generator(Signature((shaped,), ())).feed({}).values[port.name]


# Splits arrays that hold several samples, and refuses samples that lack an input.


def samples(arrays: Mapping[str, Any], interface: Signature) -> list[dict[str, Any]]:
    """Splits arrays by input name into samples, one dictionary for each sample.

    An array holds several samples if it has one axis more than its input, or if its first axis is longer than the 1
    that the input fixes. Arrays with one sample are in the first dictionary only, because later inputs are filled from
    it. If arrays hold different numbers of samples, they stay unchanged, and the model refuses them.
    """
    ports = {port.name: port for port in interface.inputs}
    stacked = {name: found for name, array in arrays.items() if (found := _stacked(array, ports.get(name))) is not None}
    counts = {len(found) for found in stacked.values()}
    if len(counts) != 1 or counts == {0}:
        return [dict(arrays)]
    made: list[dict[str, Any]] = [{name: found[at] for name, found in stacked.items()} for at in range(counts.pop())]
    made[0] |= {name: array for name, array in arrays.items() if name not in stacked}
    return made


def _stacked(array: Any, port: Port | None) -> Any | None:
    """Returns the array with the samples along its first axis, each in the input's layout; None if the array holds one
    sample."""
    if not isinstance(array, np.ndarray) or port is None or port.shape is None or port.kind != "tensor":
        return None
    shape = port.shape
    if array.ndim == len(shape) + 1 and _fits(array.shape[1:], shape):
        return array
    longer = array.ndim == len(shape) > 0 and shape[0] == 1 and array.shape[0] > 1
    return array[:, None] if longer and _fits(array.shape[1:], shape[1:]) else None


def _fits(sizes: tuple[int, ...], shape: tuple[Any, ...]) -> bool:
    return all(not isinstance(dim, int) or dim == size for size, dim in zip(sizes, shape, strict=True))


def check_complete(
    label: str, own: Mapping[str, Any], held: Mapping[str, Any], interface: Signature, without: Collection[str] = ()
) -> None:
    """Refuses values that lack a required input of the model, except for inputs in `without`. `own` are the given
    values; `held` also has the values that were copied from the previous input.

    Raises:
        OnnxsmithError: `input/incomplete` if a value is missing, or if a copied value has other sizes than the values
            in `own`.
    """
    mine = of_feed(interface, {name: value for name, value in held.items() if name in own})
    for port in interface.required():
        if port.kind == "optional" or port.name in (*own, *without):
            continue
        why = "no earlier input has a value for it"
        if port.name in held:
            clashes = list(_clashes(interface, port, held[port.name], mine))
            if not clashes:
                continue
            why = f"the value of the earlier input does not fit: dimension {clashes[0]} here"
        raise problem(
            "input/incomplete",
            f"{label} has no value for the input {port.name!r}",
            where=f"{port.name}: {port}",
            why=why,
            fix=f"add {port.name!r} to the file, or give, after the file, an array that numpy.save wrote: "
            f"--input {pasted(port.name)}=FILE.npy",
        )


def _clashes(interface: Signature, port: Port, value: Any, mine: Mapping[str, int]) -> Iterator[str]:
    for symbol, size in of_feed(interface, {port.name: value}).items():
        if mine.get(symbol, size) != size:
            yield f"{symbol!r} is {size} there and {mine[symbol]}"
