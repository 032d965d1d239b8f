"""Reads off answers about single operators which conditions a target has: the tables of its profile."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge_tables.unseen import is_unknown
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.operators.dtypes import shown
from onnxsmith.graph.structure import schema
from onnxsmith.graph.structure.schema import Schema

Line = Mapping[str, Any]
Feature = tuple[str, str, Any]
"""A kind ("attributes", "operands", …), a name, and what it is in a case."""

INDENT = "    "
_RARE = 4
"""Cases of an operand that is computed and refused, for each that is taken, from which on it has to be constant. A
choice: a few are taken, such as empty axes."""
KEPT = ("constants", "dynamic", "changed")


def table(lines: Sequence[Line]) -> str:
    """The tables `[[operators]]` and the list `refused`, as TOML."""
    by_op: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if not line["limit"] and not _is_odd(line):
            by_op[line["op"]].append(line)
    never = {op: found for op, found in by_op.items() if not any(line["taken"] for line in found)}
    # Of an operator that is refused for its operands or its attributes nothing is known.
    refused = sorted(op for op, found in never.items() if any(is_unknown(op, line["why"]) for line in found))
    groups: dict[str, list[str]] = defaultdict(list)
    for op, found in sorted(by_op.items()):
        if op not in never:
            groups[conditions(found)].append(op)
    texts = [f"refused = [\n{_list(refused)}]"] if refused else []
    texts += [f"[[operators]]\nnames = [\n{_list(names)}]\n{said}".rstrip() for said, names in
              sorted(groups.items(), key=lambda pair: (bool(pair[0]), pair[1]))]  # fmt: skip
    return "\n\n".join(texts)


def _is_odd(line: Line) -> bool:
    """Whether an answer is about a form that networks do not have: a list of sizes or axes of unknown length, or
    another dtype than the one that the attributes of ai.onnx.ml decide."""
    is_list = line["dynamic"] and (line["rank"] or 0) < 2
    return bool(is_list or (line["changed"] and line["op"].startswith("ai.onnx.ml")))


def _list(names: Sequence[str]) -> str:
    text = ", ".join(f'"{name}"' for name in names) + ","
    return "\n".join(textwrap.wrap(text, 116, initial_indent=INDENT, subsequent_indent=INDENT)) + "\n"


def conditions(lines: Sequence[Line]) -> str:
    """What distinguishes the answers about an operator, as the lines of a table."""
    return "\n".join(_Operator(lines).said())


@dataclass
class _Operator:
    lines: Sequence[Line]

    def __post_init__(self) -> None:
        self.taken = [line for line in self.lines if line["taken"]]
        self.refused = [line for line in self.lines if not line["taken"]]

    def said(self) -> Iterator[str]:
        yield from self._versions()
        yield from self._dtypes()
        yield from self._constants()
        yield from self._symbols()
        yield from self._features()

    def _leave(self, explained: list[Line]) -> None:
        gone = {id(line) for line in explained}
        self.refused = [line for line in self.refused if id(line) not in gone]

    def _versions(self) -> Iterator[str]:
        """The oldest and the newest form that is taken, where others are not."""
        versions = [line["since"] for line in self.taken]
        unknown = [line for line in self.refused if is_unknown(line["op"], line["why"])]
        older = [line for line in unknown if line["since"] < min(versions)]
        newer = [line for line in unknown if line["since"] > max(versions)]
        if older:
            yield f"since = {min(versions)}"
        if newer:
            yield f"until = {max(versions)}"
        self._leave([*older, *newer])

    def _dtypes(self) -> Iterator[str]:
        """For each type variable the dtypes that are not refused, where others are. What was not tried is taken."""
        names = dict.fromkeys(name for line in self.lines for name in line["dtypes"])
        possible: dict[str, set[str]] = defaultdict(set)
        wrong: dict[str, set[str]] = defaultdict(set)
        for name in names:
            good = {line["dtypes"][name] for line in self.taken if name in line["dtypes"]}
            bad = [line for line in self.refused if name in line["dtypes"] and line["dtypes"][name] not in good]
            key = self._key(name)  # the variable of one operand may have several names, one in each version
            if key and self._possible(name) - {line["dtypes"][name] for line in bad}:
                possible[key] |= self._possible(name)
                wrong[key] |= {line["dtypes"][name] for line in bad}
                self._leave(bad)
        found = [f"{key} = {_texts(possible[key] - wrong[key])}" for key in possible if wrong[key] & possible[key]]
        if found:
            yield f"dtypes = {{ {', '.join(found)} }}"

    def _key(self, name: str) -> str:
        """How a table names a type variable: that of the first operand by "*", which holds for each version."""
        schemas = self._schemas()
        if all(one.inputs and one.inputs[0].type == name for one in schemas.values() if _knows(one, name)):
            return '"*"'
        known = all(_knows(one, name) for one in schemas.values())
        return (f'"{name}"' if "(" in name else name) if known else ""

    def _schemas(self) -> dict[int, Schema]:
        domain, _, op = self.lines[0]["op"].rpartition("::")
        found = {version: schema.find(op, domain, version) for version in schema.versions(op, domain)}
        return {since: one for since, one in found.items() if one is not None}

    def _possible(self, name: str) -> set[str]:
        """The dtypes that the specification allows for a type variable."""
        formals = (one for found in self._schemas().values() for one in (*found.inputs, *found.outputs))
        types = {text for one in formals if one.type == name for text in one.types}
        return {shown(dtypes.read(text[7:-1], "")) for text in types if text.startswith("tensor(")}

    def _constants(self) -> Iterator[str]:
        """Operands that are constant whenever the node is taken, and are not in a node that is refused."""
        found = []
        for name in dict.fromkeys(name for line in self.taken for name in line["constants"]):
            open_ = [line for line in self.taken if name in line["operands"] and name not in line["constants"]]
            bad = [line for line in self.refused if name in line["operands"] and name not in line["constants"]]
            if len(bad) > _RARE * len(open_):
                found.append(name)
                self._leave(bad)
        if found:
            yield f"constant = {_texts(found)}"

    def _symbols(self) -> Iterator[str]:
        """Whether symbolic axes are refused."""
        bad = [line for line in self.refused if line["dynamic"]]
        if bad and not any(line["dynamic"] for line in self.taken):
            yield "static = true"
        self._leave(bad)  # axes that only some cases refuse are no condition that a table can say

    def _features(self) -> Iterator[str]:
        """Attributes, operands, results and ranks that only refused nodes have; the one that explains most first."""
        limits: dict[str, str] = {}
        absent: list[str] = []
        ranks: set[int] = set()
        known = {feature for line in self.taken for feature in _features(line)}
        while self.refused:
            counts = Counter(feature for line in self.refused for feature in _features(line) if feature not in known)
            usable = [(count, feature) for feature, count in counts.items() if self._usable(feature)]
            if not usable:
                break
            _, feature = max(usable, key=lambda pair: (pair[0], -_ORDER.index(pair[1][0]), str(pair[1])))
            kind, name, _ = feature
            if kind == "attributes":
                limits[name] = _limit(line["attributes"][name] for line in self.taken if name in line["attributes"])
            elif kind == "ranks":
                ranks = {line["rank"] for line in self.taken if line["rank"] is not None}
            else:
                absent.append(name)
            self._leave([line for line in self.refused if feature in _features(line)])
        if absent:
            yield f"absent = {_texts(absent)}"
        if limits:
            yield f"attributes = {{ {', '.join(f'{name} = {limit}' for name, limit in limits.items())} }}"
        first = {found.inputs[0].name for found in self._schemas().values() if found.inputs}
        if ranks and len(first) == 1:
            yield f"ranks = {{ {first.pop()} = {_numbers(ranks)} }}"
        if self.refused:
            cases = sorted({line["case"] for line in self.refused})
            more = f" and {len(cases) - 2} others" if len(cases) > 2 else ""
            yield f'note = "refused without a reason that a table can say: {", ".join(cases[:2])}{more}"'

    def _usable(self, feature: Feature) -> bool:
        """Whether a table can say that this is refused, without a guess about values that were not tried."""
        kind, name, value = feature
        if kind != "attributes":
            return True
        good = [line["attributes"][name] for line in self.taken if name in line["attributes"]]
        if isinstance(value, str):
            return bool(good)
        if isinstance(value, tuple):
            return bool(good) and len({element for one in good for element in one}) == 1
        return bool(good) and {value, *good} <= {0, 1}


def _knows(found: Schema, name: str) -> bool:
    return any(one.type == name for one in (*found.inputs, *found.outputs))


_ORDER = ["attributes", "operands", "results", "ranks"]


def _features(line: Line) -> set[Feature]:
    """What a case has that a condition can be about."""
    found: set[Feature] = set()
    for name, value in line["attributes"].items():
        found.add(("attributes", name, tuple(value) if isinstance(value, list) else value))
    found |= {("operands", name.partition("[")[0], True) for name in line["operands"]}
    found |= {("results", name.partition("[")[0], True) for name in line["results"]}
    if line["rank"] is not None:
        found.add(("ranks", "", line["rank"]))
    return found


def _limit(values: Any) -> str:
    found = {element for one in values for element in (one if isinstance(one, list) else [one])}
    said = [f'"{one}"' if isinstance(one, str) else str(one) for one in sorted(found, key=str)]
    return said[0] if len(said) == 1 else f"[{', '.join(said)}]"


def _texts(found: Iterable[str]) -> str:
    return f"[{', '.join(f'{chr(34)}{one}{chr(34)}' for one in sorted(found))}]"


def _numbers(found: set[int]) -> str:
    low, high = min(found), max(found)
    if found == set(range(low, high + 1)) and high > low:
        return f"{{ min = {low}, max = {high} }}"
    return f"[{', '.join(map(str, sorted(found)))}]"
