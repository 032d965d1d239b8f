"""Runs the parts of a model as generation runs them, under the names that all layouts share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.comparison.outputs.folders.graph_parts import Generation, GraphPart
from onnxsmith.comparison.outputs.folders.graph_ports import HIDDEN, LOGITS, after, before, is_past
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Feeds, Outputs, Session

TOKENS, DECODER_TOKENS, MASK, SEEN_MASK, POSITIONS = (
    "input_ids", "decoder_input_ids", "attention_mask", "encoder_attention_mask", "position_ids",
)  # fmt: skip
Sizes = Mapping[str, tuple[int, int]]
"""Holds the number of heads and their size by the name of a cache."""


def part_feed(part: GraphPart, values: Mapping[str, Any], caches: Sizes) -> dict[str, Any]:
    """Returns the inputs of a graph under its own names. A first call has empty caches. Floats get the dtype of the
    graph's inputs."""
    made = {}
    values = with_empty(values, caches) if is_first(values) else values
    for port in part.interface.inputs:
        name = part.names.inputs[port.name]
        kind = ir.DataType[port.dtype.upper()].numpy()
        if name in values:
            made[port.name] = np.asarray(values[name]).astype(kind, copy=False)
    return made


def is_first(values: Feeds) -> bool:
    """Whether the values are those of a first call: without caches, or with empty ones."""
    return all(np.asarray(value).shape[2] == 0 for name, value in values.items() if is_past(name))


def with_empty(values: Mapping[str, Any], caches: Sizes) -> dict[str, Any]:
    """Returns the values of a first call with empty caches."""
    batch = len(next(iter(values.values())))
    empty = {before(name): np.zeros((batch, heads, 0, size), np.float32) for name, (heads, size) in caches.items()}
    return {**empty, **values}


@dataclass
class Player(Session):
    """Calls the graph that a call needs. `sessions` run the parts. `signature` is not that of one graph."""

    generation: Generation
    sessions: Mapping[GraphPart, Session]
    caches: Sizes
    provider: str = ""
    signature: Signature = field(default_factory=lambda: Signature((), ()))

    def run(self, feeds: Feeds) -> Outputs:
        """Returns the outputs of a call by their shared names. The states that a call only passes on are among
        them."""
        generation, values, found = self.generation, dict(feeds), {}
        if generation.encoder is not None and HIDDEN not in values:
            found[HIDDEN] = values[HIDDEN] = self._run(generation.encoder, values)[HIDDEN]
        elif HIDDEN in values:
            found[HIDDEN] = values[HIDDEN]
        part = generation.first if is_first(values) or generation.later is None else generation.later
        passed = {after(name): value for name, value in values.items() if is_past(name) and ".encoder." in name}
        return {**passed, **self._run(part, values), **found}

    def _run(self, part: GraphPart, values: Feeds) -> dict[str, Any]:
        outputs = self.sessions[part].run(part_feed(part, values, self.caches))
        return {part.names.outputs[name]: value for name, value in outputs.items()}

    def close(self) -> None:
        for session in self.sessions.values():
            session.close()


def next_feed(values: Mapping[str, Any], outputs: Outputs, tokens: Any) -> dict[str, Any]:
    """Returns the inputs of the next call: the chosen tokens, [batch, 1], the caches, and the mask and the positions
    of these tokens."""
    key = DECODER_TOKENS if DECODER_TOKENS in values else TOKENS
    made: dict[str, Any] = {before(name): value for name, value in outputs.items() if name.startswith("present.")}
    made[key] = tokens.astype(values[key].dtype)
    if HIDDEN in outputs:
        made[HIDDEN] = outputs[HIDDEN]
    if SEEN_MASK in values:
        made[SEEN_MASK] = values[SEEN_MASK]
    if key == TOKENS and MASK in values:
        mask = values[MASK]
        made[MASK] = np.concatenate([mask, np.ones((len(mask), 1), mask.dtype)], axis=1)
    if POSITIONS in values:
        made[POSITIONS] = values[POSITIONS][:, -1:] + 1
    return made


def best(outputs: Outputs) -> Any:
    """Returns the likeliest tokens after the last one, [batch, 1]."""
    return np.asarray(outputs[LOGITS], np.float64)[:, -1:].argmax(-1)
