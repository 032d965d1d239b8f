"""Finds the outputs of a model that are the state for inputs of its next call.

Exported files name the two ends of a state in different ways: `past_key_values.0.key` and `present.0.key`, `h` and
`hn`, `state` and `stateN`, `cache_in` and `cache_out`. Words that say "before" and "after" are removed from both names.
The remaining names have to be equal, and dtype and shape have to fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted
from onnxsmith.comparison.outputs.sides import SideSource, renamed
from onnxsmith.exporter.inputs import state_pairs
from onnxsmith.graph.structure.signature import Dim, Port, Signature

_BEFORE = {"past", "prev", "previous", "old", "last", "initial", "init", "begin"}
_AFTER = {"present", "new", "next", "updated", "current", "final", "n", "nxt", "upd"}
_ENDS = {"in", "input"}, {"out", "output"}
"""Words that also distinguish inputs from outputs in general. They count only in a name with a word of `_STATES`."""
_STATES = {
    "cache", "cached", "state", "states", "hidden", "cell", "memory", "mem", "mems", "conv", "key", "value", "k", "v",
    "h", "c", "kv", "ssm", "rnn", "lstm", "gru", "recurrent", "buffer", "context", "ctx", "carry",
}  # fmt: skip
"""Words that name a state."""
_SAME = {"key_values": "", "keyvalues": "", "kv_cache": "cache"}
"""Parts of names that one end of a state has and the other may lack, as in past_key_values and present."""
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z]|\b|\d|_)|[A-Z]?[a-z]+|\d+|[A-Z]+")


@dataclass(frozen=True)
class Fed:
    """An input of the reference, and the output whose value it gets in the next call. `first` is its value in the first
    call, if the file says it. `shape` is the declared shape of the output, if a side declares it."""

    input: str
    output: str
    first: Any = None
    shape: tuple[Dim, ...] | None = None


def fed_back(texts: Sequence[str], a: SideSource, b: SideSource) -> tuple[Fed, ...]:
    """Returns the state of the reference `a`, from the texts `INPUT=OUTPUT`, or else from the metadata of either file,
    or else from the names of either side.

    Raises:
        OnnxsmithError: `compare/state` if a text names no such pair, or if no pair is found.
    """
    shapes: dict[str, tuple[Dim, ...] | None] = {}
    for side in (a, b):
        theirs = _names(side, a)
        shapes |= {
            theirs[port.name]: port.shape for port in side.interface.outputs if not shapes.get(theirs[port.name])
        }
    return tuple(replace(pair, shape=shapes[pair.output]) for pair in _pairs(texts, a, b))


def _pairs(texts: Sequence[str], a: SideSource, b: SideSource) -> tuple[Fed, ...]:
    if texts:
        return tuple(pair for text in texts for pair in _asked(text, a, b))
    for side in (a, b):
        theirs = _names(side, a)
        held = () if side.model is None else state_pairs.stored(side.model)
        found = tuple(Fed(theirs[one.input], theirs[one.output], one.first) for one in held if one.input in theirs)
        if found:
            return found
    for side in (a, b):
        theirs = _names(side, a)
        found = tuple(Fed(theirs[pair.input], theirs[pair.output]) for pair in by_name(side.interface))
        if found:
            return found
    raise _none(a.interface)


def _names(side: SideSource, a: SideSource) -> dict[str, str]:
    """Maps each port of a side to the reference's name for it."""
    return {own: mine for mine, own in renamed(side.interface, a.interface).items()}


def by_name(interface: Signature) -> Iterator[Fed]:
    """Yields the pairs whose names say that the output is the input of the next call."""
    found: dict[str, list[str]] = {}
    for port in interface.inputs:
        outputs = [one.name for one in interface.outputs if fits(port, one) and _is_next(port.name, one.name)]
        # An ambiguous name is left to --state.
        if len(outputs) == 1:
            found.setdefault(outputs[0], []).append(port.name)
    yield from (Fed(inputs[0], output) for output, inputs in found.items() if len(inputs) == 1)


def fits(port: Port, output: Port) -> bool:
    """Whether an input may get the value of an output: dtype, rank and fixed sizes do not contradict each other."""
    if port.kind != output.kind or (port.dtype != output.dtype and "undefined" not in (port.dtype, output.dtype)):
        return False
    if port.shape is None or output.shape is None:
        return True
    pairs = list(zip(port.shape, output.shape, strict=False))
    fixed = all(took == gave for took, gave in pairs if isinstance(took, int) and isinstance(gave, int))
    return len(port.shape) == len(output.shape) and fixed


def _is_next(name: str, output: str) -> bool:
    """Whether the output's name is the input's name for the next call."""
    mine, theirs = _words(name), _words(output)
    for before in _stems(mine, _BEFORE, _ENDS[0], first="0"):
        for after in _stems(theirs, _AFTER, _ENDS[1], first="1"):
            told = before.told or after.told or (bool({*before.rest} & _STATES) and (before.ends or after.ends))
            if before.rest and before.rest == after.rest and told:
                return True
    return False


@dataclass(frozen=True)
class _Stem:
    """The words of a name without those that say which end of a state it is. `told` says that such a word was certain,
    `ends` that it was only a word of `_ENDS` or a final number."""

    rest: tuple[str, ...]
    told: bool
    ends: bool


def _stems(words: Sequence[str], certain: set[str], ends: set[str], *, first: str) -> Iterator[_Stem]:
    """Yields the stems of a name. `h0` is the state before `hn`, and `h_1` may be the state after `h_0`. So a name that
    ends in the number `first` has a second stem without it."""
    left = tuple(word for word in words if word not in certain)
    told = len(left) < len(words)
    yield _Stem(left, told, ends=False)
    shorter = tuple(word for word in left if word not in ends)
    if len(shorter) < len(left):
        yield _Stem(shorter, told, ends=True)
    if len(left) > 1 and left[-1] == first and not told:
        yield _Stem(left[:-1], told=False, ends=True)


def _words(name: str) -> list[str]:
    """Returns the words of a name, in lower case; `stateN` has two."""
    text = name
    for part, short in _SAME.items():
        text = text.replace(part, short)
    words = [word.lower() for word in _WORD.findall(text)]
    if words and len(words[-1]) == 2 and words[-1][1] == "n" and words[-1][0] in _STATES:
        words[-1:] = [words[-1][0], "n"]  # hn, cn
    return words


def _asked(text: str, a: SideSource, b: SideSource) -> Iterator[Fed]:
    """Yields the pairs of a text `INPUT=OUTPUT` with the names of either side. A `*` in both stands for the same
    text."""
    name, equals, output = (part.strip() for part in text.partition("="))
    interface = a.interface
    inputs = {port.name: port for port in interface.inputs}
    outputs = {port.name: port for port in interface.outputs}
    theirs = {side: _names(side, a) for side in (a, b)}
    found = []
    for side in (a, b):
        names = theirs[side]
        for one in (port.name for port in side.interface.inputs):
            middle = _middle(one, name)
            made = output.replace("*", middle, 1) if middle is not None else ""
            if middle is not None and names.get(one) in inputs and names.get(made) in outputs:
                found.append((names[one], names[made]))
        if found:
            break
    if not equals or not found:
        raise problem(
            "compare/state",
            f"{text!r} does not name an existing input and an existing output",
            where=f"--state {text}",
            why=_listing(interface),
            fix=f"write {_choices(interface) or 'the names of an input and an output that exist'}; "
            "a pattern names several: --state 'past_key_values.*=present.*'",
        )
    for own, gave in found:
        if not fits(inputs[own], outputs[gave]):
            raise problem(
                "compare/state",
                f"the output {gave!r} does not fit the input {own!r}",
                where=f"--state {text}",
                why=f"{own} is {inputs[own]}, {gave} is {outputs[gave]}",
                fix="name the output with the dtype and the shape of that input",
            )
        yield Fed(own, gave)


def _middle(name: str, pattern: str) -> str | None:
    """Returns the text that `*` stands for if a name fits a pattern; None if it does not fit."""
    before, star, after = pattern.partition("*")
    if not star:
        return "" if name == pattern else None
    long_enough = len(name) >= len(before) + len(after)
    if not long_enough or not name.startswith(before) or not name.endswith(after):
        return None
    return name[len(before) : len(name) - len(after)]


def _listing(interface: Signature) -> str:
    inputs, outputs = (", ".join(f"{p.name} {p}" for p in ports) for ports in (interface.inputs, interface.outputs))
    return f"inputs: {inputs}; outputs: {outputs}"


_SHOWN = 4
"""Limits the pairs that an error offers. A choice: one line."""


def _choices(interface: Signature) -> str:
    """Returns pairs of an input and an output that fit, the last ports first, because models have states behind other
    inputs; "" if no two fit."""
    pairs = [
        f"--state {pasted(f'{port.name}={one.name}')}"
        for port in reversed(interface.inputs)
        for one in reversed(interface.outputs)
        if fits(port, one)
    ]
    return ", or ".join(pairs[:_SHOWN])


def _none(interface: Signature) -> OnnxsmithError:
    choices = _choices(interface)
    return problem(
        "compare/state",
        "no name shows which output is the state of the next call"
        if choices
        else "no output can be the state of an input",
        where="--steps",
        why=_listing(interface),
        fix=f"say which output each input gets in the next call: {choices}"
        if choices
        else "leave --steps out: no output has the dtype and the shape of an input, so the model has no state",
    )
