"""Checks the operators, operands and attributes that a profile names against the ONNX specification."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.structure import schema
from onnxsmith.targets.profiles.profile_format import ALL, DATA, Operators, Profile


def check(profile: Profile, where: str) -> None:
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
                    why=f"operators {seen[name]} lists it, too",
                    fix=f"remove {name} from one of the two tables",
                )
            seen[name] = number
            _check_operator(name, place)
            _check_entry(name, entry, place)
    for rule in profile.rules:
        for name in rule.operators:
            _check_operator(name, f"{where}, rules")


def near(name: str, known: Iterable[str]) -> str | None:
    """Returns the correct name that a wrong name most likely stands for: `Conv` for `Convolution`. Returns None if
    there is no such name."""
    by_small = {one.lower(): one for one in known}
    starts = [one for one in by_small if len(one) > 2 and name.lower().startswith(one)]
    found = sorted(starts, key=len)[-1:] or difflib.get_close_matches(name.lower(), by_small, 1, 0.6)
    return by_small[found[0]] if found else None


def _check_operator(name: str, where: str) -> None:
    domain, op = _parts(name)
    if domain in schema.domains() and not schema.versions(op, domain):
        every = schema.every_name(domain)
        meant = near(op, every)
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
    meant = near(name, known)
    return problem(
        "profile/unknown-name",
        what,
        where=where,
        why=f"the names are {', '.join(known)}" if known else "",
        fix=f"write {meant} instead of {name}" if meant else f"remove {name}",
    )
