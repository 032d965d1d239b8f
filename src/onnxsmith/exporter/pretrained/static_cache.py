"""Makes the cache of fixed length that `generation_config.json` asks for: its tensors keep their sizes from call to
call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.exporter.pretrained.example_makers import part, read

_STATIC = ("static", "offloaded_static")
"""Lists the values of `cache_implementation` in transformers 5.24 that mean `StaticCache`."""
LEAST = 17
"""The calls for measuring a state need this many tokens: one more than the longest text of `generation_calls.py`."""
UNFIX = "remove cache_implementation from generation_config.json: the file then has a state that grows"


@dataclass(frozen=True)
class Fixed:
    """An empty cache that holds `length` tokens; each call of `make` makes a new one."""

    length: int
    make: Callable[[], Any]


def fixed(config: Any, folder: Path) -> Fixed | None:
    """Returns the folder's cache of fixed length; None if its generation uses another cache. The length is
    `max_cache_len` or `max_length` of `generation_config.json`, or else the number of the model's positions.

    Raises:
        OnnxsmithError: `export/no-state` if the cache is shorter than `LEAST`, or the model has an encoder, whose
            states a static cache keeps together with those of the decoder.
    """
    said = read(folder / "generation_config.json")
    if said.get("cache_implementation") not in _STATIC:
        return None
    text = part(config, "text_config")
    positions: int = getattr(text, "max_position_embeddings", 0)
    length = int(said.get("max_cache_len") or said.get("max_length") or positions)
    if getattr(config, "is_encoder_decoder", False) or length < LEAST:
        short = f"it holds {length} tokens, and {LEAST} are needed to measure it"
        raise problem(
            "export/no-state",
            "a static cache of this model is not exported",
            where="cache_implementation in generation_config.json",
            why="the model has an encoder" if getattr(config, "is_encoder_decoder", False) else short,
            fix=UNFIX,
        )

    def make() -> Any:
        import transformers

        return transformers.StaticCache(config=config, max_cache_len=length)

    return Fixed(length, make)
