"""Judges the conditions of one operator on one node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.targets.profiles.condition_result import Finding, refused, unknown
from onnxsmith.targets.profiles.node_facts import Slot, Subject
from onnxsmith.targets.profiles.profile_format import ALL, DATA, Operators, Profile
from onnxsmith.targets.profiles.value_limit import Limit

_BITS = {"bool": 8, "float4e2m1": 4, "complex64": 64, "complex128": 128}


def of_operator(entry: Operators, subject: Subject, profile: Profile) -> Iterator[Finding]:
    """Yields the findings of the conditions in the operator's own table."""
    doubtful = profile.doubtful_dtypes if profile.dtypes is not None else {}
    yield from _version(entry, subject)
    yield from _counts(entry, subject)
    yield from _absent(entry, subject)
    for key, allowed in entry.dtypes.items():
        for slot in subject.data() if key == DATA else subject.named(key):
            yield from _dtype(slot, allowed, f"{subject.name} accepts", doubtful)
    if entry.rank is not None:
        for slot in subject.slots:
            yield from _rank(slot, entry.rank)
    for key, limit in entry.ranks.items():
        for slot in subject.named(key):
            yield from _rank(slot, limit)
    for key, axes in entry.dims.items():
        for slot in subject.named(key):
            yield from _axes(slot, axes)
    yield from _static(entry, subject)
    yield from _constant(entry, subject, folds=profile.folds)
    yield from _values(entry, subject)
    yield from _attributes(entry, subject)
    given = [name for name in entry.doubtful if name in subject.node.attributes or subject.named(name)]
    if given:
        yield unknown(f"{given[0]} is given: {entry.note}", entry.source)
    if entry.decisive:
        yield unknown(entry.note or "the source of the table states a limit that is not checked", entry.source)


def of_every_node(profile: Profile, entry: Operators, subject: Subject) -> Iterator[Finding]:
    """Yields the findings of the limits on all operands and results."""
    silent = profile.dtypes is None and not entry.dtypes  # the tables name no dtypes
    for slot in subject.data() if silent and profile.doubtful_dtypes else ():
        if slot.dtype is None:
            yield unknown(f"the dtype of {slot.name} is not known")
        elif slot.dtype in profile.doubtful_dtypes:
            yield unknown(f"{slot.name} is {slot.dtype}: {profile.doubtful_dtypes[slot.dtype]}")
    for slot in subject.slots:
        if profile.dtypes is not None:
            yield from _dtype(slot, profile.dtypes, "the target has", profile.doubtful_dtypes)
        if profile.max_rank is not None:
            yield from _rank(slot, Limit(None, None, profile.max_rank))
        if profile.static and slot.is_tensor and not slot.is_static:
            yield _not_static(slot)
        if profile.max_dim is not None:
            yield from _every_axis(slot, profile.max_dim)
        if profile.max_tensor_bytes is not None:
            yield from _bytes(slot, profile.max_tensor_bytes)


def bytes_of(dtype: str, elements: int) -> int | None:
    """Returns the bytes of a tensor, with four-bit and two-bit elements packed; None for strings and for types that are
    no tensors."""
    digits = "".join(one for one in dtype.removeprefix("b").partition("e")[0] if one.isdigit())
    bits = _BITS.get(dtype) or (int(digits) if digits and "(" not in dtype else 0)
    return -(-elements * bits // 8) if bits else None


def _version(entry: Operators, subject: Subject) -> Iterator[Finding]:
    if entry.since is None and entry.until is None:
        return
    if subject.schema is None:
        yield unknown(f"the version of {subject.name} is not known")
    elif not Limit(None, entry.since, entry.until).allows(subject.schema.since):
        which = str(Limit(None, entry.since, entry.until))
        yield refused(f"{subject.name} has version {subject.schema.since}; the target accepts {which}")


def _counts(entry: Operators, subject: Subject) -> Iterator[Finding]:
    for limit, slots, noun in (
        (entry.inputs, subject.operands, "operands"),
        (entry.outputs, subject.results, "results"),
    ):
        if limit is not None and not limit.allows(len(slots)):
            yield refused(f"{len(slots)} {noun} are given; the target accepts {limit}")


def _absent(entry: Operators, subject: Subject) -> Iterator[Finding]:
    for name in entry.absent:
        if name in subject.node.attributes:
            yield refused(f"the attribute {name} is not supported")
        for slot in subject.named(name):
            yield refused(f"the {'result' if slot.is_result else 'operand'} {slot.name} is not supported")


def _dtype(slot: Slot, allowed: tuple[str, ...], lead: str, doubtful: dict[str, str]) -> Iterator[Finding]:
    if slot.dtype is None:
        yield unknown(f"the dtype of {slot.name} is not known")
    elif slot.dtype in allowed:
        return
    elif slot.dtype in doubtful:
        yield unknown(f"{slot.name} is {slot.dtype}: {doubtful[slot.dtype]}")
    else:
        yield refused(f"{slot.name} is {slot.dtype}; {lead} {_either(allowed)}")


def _rank(slot: Slot, limit: Limit) -> Iterator[Finding]:
    if not slot.is_tensor:
        return
    if slot.dims is None:
        yield unknown(f"the rank of {slot.name} is not known")
    elif not limit.allows(len(slot.dims)):
        yield refused(f"{slot.name} has rank {len(slot.dims)}; the target accepts {limit}")


def _axes(slot: Slot, axes: dict[str, Limit]) -> Iterator[Finding]:
    if slot.dims is None:
        yield unknown(f"the shape of {slot.name} is not known")
        return
    for key, limit in axes.items():
        if not -len(slot.dims) <= int(key) < len(slot.dims):
            continue  # the axis does not exist
        dim = slot.dims[int(key)]
        if not isinstance(dim, int):
            yield unknown(f"dimension {key} of {slot.name} is not a fixed size; the target accepts {limit}")
        elif not limit.allows(dim):
            yield refused(f"dimension {key} of {slot.name} is {dim}; the target accepts {limit}")


def _every_axis(slot: Slot, most: int) -> Iterator[Finding]:
    if slot.dims is None and slot.is_tensor:
        yield unknown(f"the shape of {slot.name} is not known")
    for axis, dim in enumerate(slot.dims or ()):
        if not isinstance(dim, int):
            yield unknown(f"dimension {axis} of {slot.name} is not a fixed size; the target accepts at most {most}")
        elif dim > most:
            yield refused(f"dimension {axis} of {slot.name} is {dim}; the target accepts at most {most}")


def _bytes(slot: Slot, most: int) -> Iterator[Finding]:
    size = bytes_of(slot.dtype, slot.elements) if slot.dtype is not None and slot.elements is not None else None
    if size is None and slot.is_tensor:
        yield unknown(f"the size of {slot.name} in bytes is not known")
    elif size is not None and size > most:
        yield refused(f"{slot.name} has {size:,} bytes; the target accepts at most {most:,}")


def _static(entry: Operators, subject: Subject) -> Iterator[Finding]:
    for name in entry.static:
        for slot in subject.named(name) if name != ALL else subject.slots:
            if slot.is_tensor and not slot.is_static:
                yield _not_static(slot)


def _not_static(slot: Slot) -> Finding:
    if slot.dims is None or None in slot.dims:
        return unknown(f"the shape of {slot.name} is not known; the target accepts fixed shapes only")
    names = ", ".join(str(dim) for dim in slot.dims if not isinstance(dim, int))
    return refused(f"{slot.name} has the symbolic dimension {names}; the target accepts fixed shapes only")


def _constant(entry: Operators, subject: Subject, *, folds: bool) -> Iterator[Finding]:
    for name in entry.constant:
        for slot in subject.named(name):
            if subject.is_constant(slot) or (folds and subject.constants.follows(slot.value)):
                continue
            doubt = subject.constants.doubt(slot.value)
            if doubt is None:
                yield refused(f"{slot.name} must be constant")
            else:
                yield unknown(f"{slot.name} must be constant, but it {doubt}")


def _values(entry: Operators, subject: Subject) -> Iterator[Finding]:
    for name, limit in entry.values.items():
        for slot in subject.named(name):
            yield from _elements(slot, limit, subject)


def _elements(slot: Slot, limit: Limit, subject: Subject) -> Iterator[Finding]:
    values = subject.known_values(slot)
    if values is None:
        yield unknown(f"the values of {slot.name} are not known; the target accepts {limit}")
    elif not limit.allows(values):
        yield refused(f"{slot.name} is {_shown(values)}; the target accepts {limit}")


def _attributes(entry: Operators, subject: Subject) -> Iterator[Finding]:
    for name, limit in entry.attributes.items():
        if subject.schema is not None and name not in subject.schema.attributes:
            yield from _former_attribute(name, limit, subject)
            continue
        value = subject.attribute(name)
        if value is None:
            yield unknown(f"the attribute {name} is not known; the target accepts {limit}")
        elif not limit.allows(value):
            yield refused(f"the attribute {name} is {_shown(value)}; the target accepts {limit}")


def _former_attribute(name: str, limit: Limit, subject: Subject) -> Iterator[Finding]:
    """Judges a limit on an attribute that is an operand in this version of the operator. Finds nothing if the name is
    neither attribute nor operand."""
    for slot in subject.named(name):
        yield from _elements(slot, limit, subject)


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        inner = [_shown(one) for one in value[:4]] + (["…"] if len(value) > 4 else [])
        return inner[0] if len(value) == 1 else f"[{', '.join(inner)}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
