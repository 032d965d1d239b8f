"""Reads the schema of an operator in the ONNX specification: its version, its formal inputs and its attributes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import cache

import onnx
import onnx_ir as ir

_ONNX_DOMAINS = {"", "ai.onnx"}


_WITHOUT_USE = "consumed_inputs"
"""Is an attribute that BatchNormalization requires in opset 1, for a plan of memory that no runtime makes. Models leave
it out."""


@dataclass(frozen=True)
class Parameter:
    """A formal input or output. A variadic parameter, always the last, stands for any number of operands.

    `type` is its type variable (`T`), or its only type (`tensor(float)`); `types` are all allowed types. `least` is the
    least number of operands of a variadic parameter. The operands of a `mixed` parameter may have different types.
    """

    name: str
    optional: bool = False
    variadic: bool = False
    type: str = ""
    types: frozenset[str] = frozenset()
    least: int = 1
    mixed: bool = False


@dataclass(frozen=True)
class Schema:
    """An operator at one version of its domain.

    `since` is the opset version in which this form of the operator appeared. `newest` is the version of its latest form
    in the installed onnx. `defaults` maps the optional attributes to their default values, or to None. `attributes`
    maps all attributes to their types.
    """

    since: int
    newest: int
    deprecated: bool
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    required: tuple[str, ...]
    defaults: dict[str, ir.Attr | None]
    attributes: dict[str, ir.AttributeType] = field(default_factory=dict)

    def input_name(self, index: int) -> str:
        """Returns the formal name of the input at a position: `W`, or `inputs[3]` of a variadic input; "" beyond the
        last input."""
        return _name(self.inputs, index)

    def input(self, index: int) -> Parameter | None:
        """Returns the formal input at a position: from its position on the variadic input, None beyond the last
        input."""
        return _at(self.inputs, index)

    def output(self, index: int) -> Parameter | None:
        """Returns the formal output at a position."""
        return _at(self.outputs, index)

    def output_name(self, index: int) -> str:
        """Returns the formal name of the output at a position."""
        return _name(self.outputs, index)

    def misfit(self, node: ir.Node) -> str:
        """Returns the reason for which a node is no node of this operator; "" if it is one."""
        for name in self.required:
            if name not in node.attributes and name != _WITHOUT_USE:
                return f"it has no attribute `{name}`"
        for name, attribute in node.attributes.items():
            kind = self.attributes.get(name, attribute.type)
            if attribute.type != kind:
                return f"its attribute `{name}` is {attribute.type.name}, not {kind.name}"
        for index, formal in enumerate(self.inputs):
            needed = not formal.optional and (not formal.variadic or formal.least > 0)
            if needed and (index >= len(node.inputs) or node.inputs[index] is None):
                return f"it has no operand `{formal.name}`"
        return ""


def find(op_type: str, domain: str, version: int) -> Schema | None:
    """Returns the schema in force at `version` of `domain`, or None when the installed onnx has none.

    Returns the last schema of a deprecated operator.
    """
    home = "" if domain in _ONNX_DOMAINS else domain
    try:
        found = onnx.defs.get_schema(op_type, version, home)
        newest = onnx.defs.get_schema(op_type, home)
    except onnx.defs.SchemaError:
        return None
    attributes = found.attributes.items()
    return Schema(
        since=found.since_version,
        newest=newest.since_version,
        deprecated=found.deprecated,
        inputs=tuple(_parameter(item) for item in found.inputs),
        outputs=tuple(_parameter(item) for item in found.outputs),
        required=tuple(sorted(name for name, attribute in attributes if attribute.required)),
        defaults={name: _default(attribute) for name, attribute in sorted(attributes) if not attribute.required},
        attributes={name: ir.AttributeType(_number(attribute)) for name, attribute in sorted(attributes)},
    )


@dataclass(frozen=True)
class Texts:
    """The texts of an operator at one version, as the specification has them: Markdown, with some HTML. `inputs`,
    `outputs` and `attributes` describe each of them by name."""

    doc: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    attributes: dict[str, str]


def texts(op_type: str, domain: str, version: int) -> Texts:
    """Returns the texts of the form in force at `version` of `domain`; empty when the installed onnx has none."""
    home = "" if domain in _ONNX_DOMAINS else domain
    try:
        found = onnx.defs.get_schema(op_type, version, home)
    except onnx.defs.SchemaError:
        return Texts("", {}, {}, {})
    return Texts(
        found.doc or "",
        {one.name: one.description for one in found.inputs},
        {one.name: one.description for one in found.outputs},
        {name: attribute.description for name, attribute in found.attributes.items()},
    )


@cache
def operators(domain: str, version: int) -> tuple[str, ...]:
    """Returns the names of all operators in force at `version` of `domain`, without deprecated operators."""
    home = "" if domain in _ONNX_DOMAINS else domain
    names = sorted({one.name for one in onnx.defs.get_all_schemas_with_history() if one.domain == home})
    found = ((name, find(name, home, version)) for name in names)
    return tuple(name for name, one in found if one is not None and not one.deprecated)


@cache
def versions(op_type: str, domain: str) -> tuple[int, ...]:
    """Returns the opset versions at which the operator appeared or changed, in order."""
    home = "" if domain in _ONNX_DOMAINS else domain
    found: list[int] = []
    with contextlib.suppress(onnx.defs.SchemaError):
        found.append(onnx.defs.get_schema(op_type, home).since_version)
        while found[-1] > 1:  # listing all schemas takes much longer
            found.append(onnx.defs.get_schema(op_type, found[-1] - 1, home).since_version)
    return tuple(reversed(found))


@cache
def opsets_with(op_type: str, attribute: str) -> tuple[int, ...]:
    """Returns the opsets in which an operator of ONNX has the attribute, in order."""
    known = ((opset, find(op_type, "", opset)) for opset in range(1, onnx.defs.onnx_opset_version() + 1))
    return tuple(opset for opset, found in known if found is not None and attribute in found.attributes)


def every_name(domain: str) -> tuple[str, ...]:
    """Returns the names of all operators that the domain has or had."""
    home = "" if domain in _ONNX_DOMAINS else domain
    return tuple(sorted({one.name for one in onnx.defs.get_all_schemas_with_history() if one.domain == home}))


@cache
def last_alive(op_type: str, domain: str) -> int | None:
    """Returns the newest version of the domain in which the operator is not deprecated; None if there is none."""
    home = "" if domain in _ONNX_DOMAINS else domain
    for version in range(domains().get(home, 0), 0, -1):
        found = find(op_type, home, version)
        if found is not None and not found.deprecated:
            return version
    return None


@cache
def first_alive(op_type: str, domain: str, after: int) -> int | None:
    """Returns the first version after `after` at which a form of the operator that is not deprecated appeared; None if
    there is none."""
    for version in versions(op_type, domain):
        found = find(op_type, domain, version) if version > after else None
        if found is not None and not found.deprecated:
            return version
    return None


@cache
def domains() -> dict[str, int]:
    """Returns the newest version of every domain that the installed onnx defines."""
    found: dict[str, int] = {}
    for one in onnx.defs.get_all_schemas_with_history():
        found[one.domain] = max(one.since_version, found.get(one.domain, 0))
    found[""] = onnx.defs.onnx_opset_version()
    found["ai.onnx.ml"] = onnx.defs.onnx_ml_opset_version()
    return found


def _parameter(formal: onnx.defs.OpSchema.FormalParameter) -> Parameter:
    options = onnx.defs.OpSchema.FormalParameterOption
    return Parameter(
        formal.name,
        formal.option == options.Optional,
        formal.option == options.Variadic,
        formal.type_str,
        frozenset(formal.types),
        formal.min_arity,
        not formal.is_homogeneous,
    )


def _default(attribute: onnx.defs.OpSchema.Attribute) -> ir.Attr | None:
    proto = attribute.default_value
    if proto.type == onnx.AttributeProto.UNDEFINED:
        return None
    return ir.serde.deserialize_attribute(proto)


def _number(attribute: onnx.defs.OpSchema.Attribute) -> int:
    number: int = attribute.type.value  # type: ignore[attr-defined]  # an enumeration, which onnx's stubs do not say
    return number


def _at(parameters: tuple[Parameter, ...], index: int) -> Parameter | None:
    if index < len(parameters):
        return parameters[index]
    return parameters[-1] if parameters and parameters[-1].variadic else None


def _name(parameters: tuple[Parameter, ...], index: int) -> str:
    if index < len(parameters) and not parameters[index].variadic:
        return parameters[index].name
    if parameters and parameters[-1].variadic:
        return f"{parameters[-1].name}[{index - len(parameters) + 1}]"
    return ""
