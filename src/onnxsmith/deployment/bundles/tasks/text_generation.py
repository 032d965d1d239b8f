"""Defines `--task text-generation`: turns a text into tokens, and finds the next tokens by greedy search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.tasks import _texts
from onnxsmith.deployment.bundles.tasks.base import Task, mismatch

_COUNT = 16
"""Counts the tokens that are recorded. A choice."""


class TextGeneration(Task):
    """Takes a text and returns its continuation. Keys and values of earlier tokens are kept if the model takes them."""

    packages = ("tokenizers",)
    uses = ("tokenizer",)

    def refuse(self, content: Content) -> None:
        self._values(content)

    def write_python(self, content: Content, folder: Path) -> None:
        _texts.write(content, folder, "processing/text_generation.py", **self._values(content))

    def record(self, content: Content, folder: Path) -> None:
        _texts.record(content, folder, "processing/text_generation.py", **self._values(content))

    def _values(self, content: Content) -> dict[str, Any]:
        name = self.id()
        folder = _texts.folder_of(content)
        output = content.outputs[0]
        if output.dtype not in ("float", "float16") or (output.shape is not None and len(output.shape) != 3):
            raise mismatch(name, "its first output is not float of 3 dimensions", f"{output.name}: {output.port}")
        taken = [port for port in content.inputs if _texts.is_cache(port)]
        given = {port.name for port in content.outputs}
        pairs = [(port.name.replace("past_key_values.", "present.", 1), port.name) for port in taken]
        lacking = [present for present, _ in pairs if present not in given]
        if lacking:
            raise mismatch(name, f"it takes caches, and has no output {lacking[0]!r}", output.name)
        return {
            "needed": _texts.needed(content, name, caches=True),
            "output": output,
            "caches": pairs,
            "empty": [(port.name, empty_shape(port.shape)) for port in taken],
            "cache_dtype": taken[0].numpy if taken else "float32",
            "ends": end_tokens(folder),
            "count": _COUNT,
        }


def empty_shape(shape: tuple[int | str | None, ...] | None) -> tuple[int, ...]:
    """Returns the shape of a cache without tokens: a batch of 1, and 0 for the length."""
    return tuple(1 if axis == 0 else dim if isinstance(dim, int) else 0 for axis, dim in enumerate(shape or ()))


def end_tokens(folder: Path) -> tuple[int, ...]:
    """Returns the tokens that end a text, from generation_config.json, else from config.json."""
    for name in ("generation_config.json", "config.json"):
        found = _texts.settings(folder, name).get("eos_token_id")
        if found is not None:
            return tuple(found) if isinstance(found, list) else (int(found),)
    return ()
