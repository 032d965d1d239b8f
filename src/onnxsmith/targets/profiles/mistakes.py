"""Makes problems for mistakes in the file of a profile, and checks the names in it against ONNX's schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic_core import ErrorDetails

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.structure import schema
from onnxsmith.targets.profiles.profile_format import ALL, DATA, Operators, Profile, Table


def check_names(profile: Profile, where: str) -> None:
    """Refuses names that no version of the specification has.

    Operators of domains that the installed onnx does not define are not checked; onnx knows no names of their operands.

    Raises:
        OnnxsmithError: `profile/unknown-name`; `profile/invalid` if two entries list one operator.
    """
    seen: dict[str, int] = {}
    for name in profile.refused:
        _check_operator(name, f"{where}, refused")
    for number, entry in enumerate(profile.operators, 1):
        for name in entry.names:
            place = f"{where}, operators {number} ({name})"
            if name in profile.refused:
                raise problem(
                    "profile/invalid",
                    f"{name} is listed under operators and under refused",
                    where=place,
                    fix=f"remove {name} from one of the two",
                )
            if name in seen:
                raise problem(
                    "profile/invalid",
                    f"{name} is listed twice",
                    where=place,
                    why=f"operators {seen[name]} also lists it",
                    fix=f"remove {name} from one of the two tables",
                )
            seen[name] = number
            _check_operator(name, place)
            _check_entry(name, entry, place)
    for rule in profile.rules:
        for name in rule.operators:
            _check_operator(name, f"{where}, rules")


def meant_name(name: str, known: Iterable[str]) -> str | None:
    """Returns the correct name that a wrong name most likely stands for: `Conv` for `Convolution`. Returns None if
    there is no such name."""
    by_small = {one.lower(): one for one in known}
    starts = [one for one in by_small if len(one) > 2 and name.lower().startswith(one)]
    found = sorted(starts, key=len)[-1:] or near_names(name.lower(), by_small, 1, 0.6)
    return by_small[found[0]] if found else None


def _check_operator(name: str, where: str) -> None:
    domain, op = _parts(name)
    if domain in schema.domains() and not schema.versions(op, domain):
        every = schema.every_name(domain)
        meant = meant_name(op, every)
        prefix = f"{domain}::" if domain else ""
        raise problem(
            "profile/unknown-name",
            f"ONNX has no operator {name}",
            where=where,
            fix=f'write "{prefix}{meant}"' if meant else f'remove "{name}"',
        )


def _check_entry(name: str, entry: Operators, where: str) -> None:
    domain, op = _parts(name)
    words = vocabulary(op, domain)
    if domain not in schema.domains():
        for key, one in _operand_names(entry):
            raise _unknown(f"the operands of {name} have no names here", one, (), f"{where}, {key}")
        return
    for key, one in _operand_names(entry):
        more = {"dtypes": words.variables, "absent": words.attributes, "doubtful": words.attributes}

        allowed = words.formals | more.get(key, frozenset())
        if one not in allowed:
            raise _unknown(f"{name} has no operand or result {one!r}", one, allowed, f"{where}, {key}")
    for one, axes in entry.dims.items():
        for axis in axes:
            if not axis.removeprefix("-").isdecimal():
                raise problem(
                    "profile/invalid",
                    f"{axis!r} is not an axis",
                    where=f"{where}, dims.{one}",
                    fix=f"write the number of an axis: dims = {{ {one} = {{ 0 = 1 }} }}",
                )
    for one in entry.attributes:
        if one not in words.attributes:
            raise _unknown(f"{name} has no attribute {one!r}", one, words.attributes, f"{where}, attributes")


def _operand_names(entry: Operators) -> Iterator[tuple[str, str]]:
    static = (one for one in entry.static if one != ALL)
    groups: dict[str, Iterable[str]] = {
        "dtypes": (one for one in entry.dtypes if one != DATA), "ranks": entry.ranks, "dims": entry.dims,
        "values": entry.values, "constant": entry.constant, "absent": entry.absent, "doubtful": entry.doubtful,
        "static": static,
    }  # fmt: skip
    for key, names in groups.items():
        for one in names:
            yield key, one


@dataclass(frozen=True)
class Vocabulary:
    """Holds the names that any version of an operator has."""

    formals: frozenset[str]
    variables: frozenset[str]
    attributes: frozenset[str]


@cache
def vocabulary(op: str, domain: str) -> Vocabulary:
    """Returns the names of the operands, results, type variables and attributes of an operator, in all its versions."""
    found = [one for one in (schema.find(op, domain, each) for each in schema.versions(op, domain)) if one is not None]
    formals = [one for each in found for one in (*each.inputs, *each.outputs)]
    return Vocabulary(
        frozenset(one.name for one in formals),
        frozenset(one.type for one in formals if one.type and "(" not in one.type),
        frozenset(name for each in found for name in each.attributes),
    )


def _parts(name: str) -> tuple[str, str]:
    domain, _, op = name.rpartition("::")
    return ("" if domain == "ai.onnx" else domain), op


def _unknown(what: str, name: str, allowed: Iterable[str], where: str) -> OnnxsmithError:
    known = sorted(allowed)
    meant = meant_name(name, known)
    return problem(
        "profile/unknown-name",
        what,
        where=where,
        why=f"the names are {', '.join(known)}" if known else "",
        fix=f"write {meant} instead of {name}" if meant else f"remove {name}",
    )


def translated(error: ErrorDetails, content: Mapping[str, Any], where: str) -> OnnxsmithError:
    """Makes a problem of the first error that pydantic found."""
    path = error["loc"]
    place = f"{where}, {_place(path, content)}"
    if error["type"] == "extra_forbidden":
        return unknown_key(path, content, where)
    if error["type"] == "missing":
        lacks = [key for key in ("title", "unlisted") if key not in content] if len(path) == 1 else []
        added = " and ".join(EXAMPLES[key] for key in lacks or [str(path[-1])])
        return invalid(f"the key {path[-1]} is missing", place, f"add {added}")
    if error["type"] == "unknown_name":
        return problem("profile/unknown-name", error["msg"], where=place, fix=error["ctx"]["fix"])
    inner = [one for one in path if isinstance(one, str) and one != DATA]
    key = inner[1] if len(inner) > 1 and inner[0] == "operators" else inner[0]
    if error["type"] == "value_error":
        return invalid(f"{key} is not a limit", place, error["msg"].removeprefix("Value error, "))
    kind = _KINDS.get(error["type"], f"is not valid: {error['msg'][0].lower()}{error['msg'][1:]}")
    fix = EXAMPLES[key]
    if error["type"] == "tuple_type" and isinstance(error["input"], str):
        fix = f'{path[-1]} = ["{error["input"]}"]'
    elif key == "dims":
        fix = fix.replace("X", str(path[-1]))
    return invalid(f"{key} {kind}", place, f"write {fix}")


_KINDS = {
    "tuple_type": "is not a list", "too_short": "is empty", "dict_type": "is not a table",
    "model_type": "is not a table", "bool_type": "is not true or false", "int_type": "is not a whole number",
    "string_type": "is not a text", "date_type": "is not a date", "greater_than": "is too small",
    "greater_than_equal": "is too small",
}  # fmt: skip
"""Maps pydantic's types of errors to their meaning in a file of TOML."""
EXAMPLES = {
    "title": 'title = "My board"', "version": 'version = "2.1"', "date": "date = 2026-11-24",
    "sources": 'sources = ["https://board.example"]', "unsaid": 'unsaid = ["The largest tensor."]',
    "notes": 'notes = ["The NPU runs convolutions only."]', "unlisted": 'unlisted = "refused"',
    "opset": "opset = { max = 17 }", "max_ir_version": "max_ir_version = 8", "domains": 'domains = ["com.microsoft"]',
    "dtypes": 'dtypes = ["float32", "int8"]', "doubtful_dtypes": 'doubtful_dtypes = { float64 = "less precise" }',
    "max_rank": "max_rank = 4", "max_dim": "max_dim = 8192", "max_tensor_bytes": "max_tensor_bytes = 1_048_576",
    "folds": "folds = true",
    "max_weight_bytes": "max_weight_bytes = 8_388_608", "static": "static = true", "subgraphs": "subgraphs = false",
    "functions": "functions = false", "refused": 'refused = ["Loop"]', "operators": '[[operators]]\nnames = ["Conv"]',
    "names": 'names = ["Conv"]', "since": "since = 11", "until": "until = 11", "rank": "rank = [3, 4]",
    "ranks": "ranks = { X = 4 }", "dims": "dims = { X = { 0 = 1 } }", "constant": 'constant = ["W"]',
    "values": "values = { W = { min = -1, max = 1 } }", "attributes": "attributes = { group = 1 }",
    "absent": 'absent = ["B"]', "doubtful": 'doubtful = ["dilations"]', "inputs": "inputs = { max = 2 }",
    "outputs": "outputs = 1", "certain": "certain = false", "note": 'note = "small ones only"',
    "decisive": "decisive = true", "source": 'source = "https://board.example"',
}  # fmt: skip
"""Holds an example of each key, for the fix of a problem."""


def invalid(what: str, where: str, fix: str) -> OnnxsmithError:
    """Returns the problem `profile/invalid`."""
    return problem("profile/invalid", what, where=where, fix=fix)


def _place(path: Sequence[int | str], content: Mapping[str, Any]) -> str:
    """Returns the place in words. For example, `operators 2 (Conv), dtypes` names the entry by its number and its first
    operator."""
    if path[:1] != ("operators",) or len(path) < 2 or not isinstance(path[1], int):
        return _keys(path)
    tables = content["operators"]
    names = as_list(tables[path[1]].get("names")) if isinstance(tables[path[1]], dict) else []
    shown = f" ({names[0]})" if names else ""
    return f"operators {path[1] + 1}{shown}" + (f", {_keys(path[2:])}" if len(path) > 2 else "")


def _keys(path: Sequence[int | str]) -> str:
    return ".".join(one for one in path if isinstance(one, str) and one != DATA)


def unknown_key(path: Sequence[int | str], content: Mapping[str, Any], where: str) -> OnnxsmithError:
    """Returns the problem `profile/unknown-key` for the last key of `path`, which lists keys and numbers of tables."""
    table: type[Table] = Operators if path[0] == "operators" and len(path) > 1 else Profile
    keys = [key for key in table.model_fields if key != "id"]
    if table is Operators and path[-1] in Profile.model_fields:
        return problem(
            "profile/unknown-key",
            f"the key {path[-1]} is in a table of operators",
            where=f"{where}, {_place(path, content)}",
            why="in TOML a key belongs to the table above it",
            fix=f"move {path[-1]} above the first [[operators]]",
        )
    return no_such_key(str(path[-1]), keys, f"{where}, {_place(path, content)}")


def no_such_key(key: str, keys: Sequence[str], where: str) -> OnnxsmithError:
    """Returns the problem `profile/unknown-key` for a table that has only the keys `keys`."""
    near = meant_name(key, keys)
    return problem(
        "profile/unknown-key",
        f"there is no key {key!r} here",
        where=where,
        why=f"the keys are {', '.join(keys)}",
        fix=f"write {near} instead of {key}" if near else f"remove {key}",
    )


def as_list(raw: Any) -> list[Any]:
    """Returns the value if it is a list, else an empty list."""
    return raw if isinstance(raw, list) else []
