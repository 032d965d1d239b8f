"""Gives the inputs and outputs of a graph of a folder the names that all layouts share.

The shared names are those of most exporters: `past_key_values.0.key` is the past, `present.0.key` the state after the
call. With an encoder they are `past_key_values.0.decoder.key` and `past_key_values.0.encoder.key`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

HIDDEN, LOGITS = "encoder_hidden_states", "logits"
SWITCHES: Mapping[str, tuple[int, int]] = {"use_cache_branch": (0, 1), "num_logits_to_keep": (0, 0)}
"""Inputs that choose how the graph computes, with their value in the first call and in later calls. The number of
logits 0 means all."""
_PAST, _PRESENT = "past_key_values", "present"
_CROSS, _SELF = {"encoder", "cross"}, {"decoder", "self"}
_KINDS = {"key": "key", "keys": "key", "k": "key", "value": "value", "values": "value", "v": "value"}
_BEGINS = re.compile(r"(past|present|cache|kv|new)", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+|\d+")


@dataclass(frozen=True)
class PortNames:
    """The shared names of a graph's inputs and outputs, by the graph's own names. Names that are not known are
    missing."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    @property
    def past(self) -> dict[str, str]:
        """Returns the caches among the inputs."""
        return {own: name for own, name in self.inputs.items() if name.startswith(_PAST)}


def cache_name(name: str, begin: str, *, has_encoder: bool) -> str | None:
    """Returns the shared name of a cache; None if the name is not that of a cache."""
    if not _BEGINS.match(name):
        return None
    words = [word.lower() for word in _WORD.findall(name)]
    numbers = [word for word in words if word.isdigit()]
    kinds = [_KINDS[word] for word in words if word in _KINDS]
    kinds = kinds[-1:] if "key" in words and "values" in words and len(kinds) > 1 else kinds
    if len(numbers) != 1 or len(kinds) != 1:
        return None
    which = "" if not has_encoder else "encoder." if _CROSS & {*words} else "decoder."
    return f"{begin}.{int(numbers[0])}.{which}{kinds[0]}"


def names_of(
    inputs: Iterable[str], outputs: Iterable[str], *, role: str, has_encoder: bool, given: Mapping[str, str]
) -> PortNames:
    """Returns the shared names of a graph with these ports. `given` maps shared names to names that the layout's
    configuration gives."""
    own = {name: shared for shared, name in given.items()}
    is_encoder = role == "encoder"
    took = {}
    for name in inputs:
        shared = own.get(name) or cache_name(name, _PAST, has_encoder=has_encoder)
        if shared is None and has_encoder and not is_encoder and name == "input_ids":
            shared = "decoder_input_ids"
        took[name] = shared or name
    gave = {}
    for name in outputs:
        shared = own.get(name) or cache_name(name, _PRESENT, has_encoder=has_encoder)
        if shared is None and is_encoder and name in ("last_hidden_state", HIDDEN):
            shared = HIDDEN
        if shared is not None or name == LOGITS:
            gave[name] = shared or name
    return PortNames(took, gave)


def after(past: str) -> str:
    """Returns the name of the state after a call: `present.0.key` for `past_key_values.0.key`."""
    return _PRESENT + past.removeprefix(_PAST)


def before(present: str) -> str:
    """Returns the name of the cache that a later call gets: `past_key_values.0.key` for `present.0.key`."""
    return _PAST + present.removeprefix(_PRESENT)


def is_past(name: str) -> bool:
    """Whether the shared name is that of a cache among the inputs."""
    return name.startswith(f"{_PAST}.")
