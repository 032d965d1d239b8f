"""Compares the schemas of an operator to say what changed from one opset version to the next."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.report.parts.item_views import Change
from onnxsmith.graph.reading import operator_text
from onnxsmith.graph.reading.exact_text import attribute_text
from onnxsmith.graph.structure import schema
from onnxsmith.graph.structure.schema import Parameter, Schema, Texts


def history(op: str, domain: str) -> Iterator[Change]:
    """Yields the first version, and every version at which the schema changed."""
    before: Schema | None = None
    for version in schema.versions(op, domain):
        now = schema.find(op, domain, version)
        if now is None:
            continue
        if before is None:
            yield Change(version, ("added",))
        else:
            differences = tuple(changes(before, now)) or ("operands, attributes and types stay",)
            meanings = _of_meanings(schema.texts(op, domain, before.since), schema.texts(op, domain, version))
            yield Change(version, (*differences, *meanings))
        before = now


def changes(before: Schema, now: Schema) -> Iterator[str]:
    """Yields the differences between two schemas, in words."""
    if now.deprecated and not before.deprecated:
        yield "deprecated"
    yield from _of_operands("input", before.inputs, now.inputs)
    yield from _of_operands("output", before.outputs, now.outputs)
    yield from _of_attributes(before, now)


def _of_meanings(before: Texts, now: Texts) -> Iterator[str]:
    """Yields the operands and attributes that the specification describes otherwise: other shapes, other meanings."""
    for word, old, new in (
        ("input", before.inputs, now.inputs),
        ("output", before.outputs, now.outputs),
        ("attribute", before.attributes, now.attributes),
    ):
        for name in (name for name in new if name in old):
            change = operator_text.change(old[name], new[name])
            if change:
                yield f"the description of {word} {name} {change}"


def kind(one: Parameter) -> str:
    """Returns whether an operand is required, optional or variadic."""
    return "variadic" if one.variadic else "optional" if one.optional else "required"


def short(type_: str) -> str:
    """Returns `float` for `tensor(float)`; returns other types unchanged."""
    return type_.removeprefix("tensor(").removesuffix(")") if type_.startswith("tensor(") else type_


def default(one: Schema, name: str) -> str:
    """Returns the default value of an attribute as text; "" without one."""
    found = one.defaults.get(name)
    return "" if found is None else attribute_text(found)


def _of_operands(word: str, before: tuple[Parameter, ...], now: tuple[Parameter, ...]) -> Iterator[str]:
    old, new = ({one.name: one for one in formal} for formal in (before, now))
    yield from (f"{word} {name} removed" for name in old if name not in new)
    yield from (f"{word} {name} added ({kind(one)})" for name, one in new.items() if name not in old)
    for name in (name for name in new if name in old):
        if kind(old[name]) != kind(new[name]):
            yield f"{word} {name} is {kind(new[name])} (was {kind(old[name])})"
        more, fewer = new[name].types - old[name].types, old[name].types - new[name].types
        if more:
            yield f"{word} {name} also takes {', '.join(sorted(map(short, more)))}"
        if fewer:
            yield f"{word} {name} no longer takes {', '.join(sorted(map(short, fewer)))}"
    kept = [name for name in old if name in new]
    if kept != [name for name in new if name in old]:
        yield f"{word}s in another order: {', '.join(new)}"


def _of_attributes(before: Schema, now: Schema) -> Iterator[str]:
    old, new = before.attributes, now.attributes
    yield from (f"attribute {name} removed" for name in old if name not in new)
    for name, type_ in new.items():
        if name not in old:
            yield f"attribute {name} added ({'required' if name in now.required else type_.name.lower()})"
            continue
        if old[name] != type_:
            yield f"attribute {name} is {type_.name.lower()} (was {old[name].name.lower()})"
        if (name in before.required) != (name in now.required):
            yield f"attribute {name} is {'required' if name in now.required else 'optional'} now"
        elif default(before, name) != default(now, name):
            old_default, new_default = default(before, name) or "nothing", default(now, name) or "nothing"
            yield f"attribute {name} defaults to {new_default} (was {old_default})"
