"""Makes the inputs of the first call of a generated text."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxsmith.comparison.outputs.folders.graph_parts import Generation, GraphPart
from onnxsmith.comparison.outputs.folders.player import DECODER_TOKENS, MASK, POSITIONS, SEEN_MASK, TOKENS
from onnxsmith.comparison.outputs.folders.references import Reference

_LENGTH, _BEGUN, _GAP = 6, 3, slice(2, 4)
"""The prompt has 6 tokens, the text after an encoder begins with 3, and the mask has a gap of 2 tokens in the second
text. A choice: lengths that differ, and a gap that hides neither the first nor the last token."""
_SPECIAL = 3
"""The first token that is drawn. The usual tokenizers have special tokens below it."""


def first_feed(generation: Generation, reference: Reference, seed: int) -> dict[str, Any]:
    """Returns the inputs of the first call by their shared names, for two texts. In the second text, the mask has a
    gap, so that a wrong meaning of the mask shows. If a graph takes one text only, or reads no gaps, there is one
    text."""
    draw = np.random.default_rng(seed)
    asked = {name for part in generation.parts for name in part.names.inputs.values()}
    rows = 2 if all(_takes_two(part) for part in generation.parts) else 1
    if generation.encoder is not None:
        return _after_encoder(generation, reference, draw, rows, asked)
    vocabulary = int(reference.settings.get("vocab_size") or 0)
    length = _fixed(generation.first, TOKENS) or _LENGTH
    values: dict[str, Any] = {TOKENS: _drawn(draw, rows, length, vocabulary)}
    mask = _mask(rows, length)
    if MASK in asked:
        values[MASK] = mask
    if POSITIONS in asked:  # as generation counts them: a token that is masked has position 1
        values[POSITIONS] = np.where(mask, mask.cumsum(-1) - 1, 1)
    return values


def _after_encoder(
    generation: Generation, reference: Reference, draw: np.random.Generator, rows: int, asked: set[str]
) -> dict[str, Any]:
    """Returns the inputs of the encoder, and the first tokens of the decoder."""
    assert generation.encoder is not None
    vocabulary = int(reference.settings.get("vocab_size") or 0)
    read = {name for name in generation.encoder.names.inputs.values() if name != MASK}
    values: dict[str, Any] = {}
    example = reference.example()
    for name in read:
        if name == TOKENS:
            values[name] = _drawn(draw, rows, _LENGTH + 1, vocabulary)
        else:
            one = np.asarray(example[name]) if name in example else _generated(generation.encoder, name, draw)
            values[name] = np.concatenate([one, np.roll(one, 1, -1)])[:rows]
    if {MASK, SEEN_MASK} & asked and TOKENS in values:
        values[MASK] = _mask(rows, _LENGTH + 1)
        values[SEEN_MASK] = values[MASK]
    start = reference.settings.get("decoder_start_token_id")
    tokens = _drawn(draw, rows, _fixed(generation.first, DECODER_TOKENS) or _BEGUN, vocabulary)
    tokens[:, 0] = start if isinstance(start, int) else 0
    values[DECODER_TOKENS] = tokens
    return values


def _generated(part: GraphPart, name: str, draw: np.random.Generator) -> Any:
    port = part.port(name)
    shape = [1, *(size if isinstance(size, int) else _LENGTH for size in (port.shape or ())[1:])] if port else [1]
    return draw.standard_normal(shape).astype(np.float32)


def _drawn(draw: np.random.Generator, rows: int, length: int, vocabulary: int) -> Any:
    return draw.integers(_SPECIAL, max(vocabulary, _SPECIAL + 2), (rows, length))


def _mask(rows: int, length: int) -> Any:
    mask = np.ones((rows, length), np.int64)
    if length > _GAP.stop:
        mask[1:, _GAP] = 0
    return mask


def _takes_two(part: GraphPart) -> bool:
    return part.reads_gaps and all(not port.shape or port.shape[0] != 1 for port in part.interface.inputs)


def _fixed(part: GraphPart, name: str) -> int | None:
    """Returns the number of tokens of a call, if the graph fixes it."""
    port = part.port(name)
    size = port.shape[1] if port is not None and port.shape and len(port.shape) == 2 else None
    return size if isinstance(size, int) else None
