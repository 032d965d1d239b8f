"""Provides the options shared by the commands that measure a score: `quantize` and `prune`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnxsmith.base.options import flag, option


def data() -> Any:
    """Makes the option `--data`."""
    return option(
        "what the score is measured on: a folder of images, an .npz, a .jsonl, file.py:function", metavar="DATA"
    )


def samples() -> Any:
    """Makes the option `--samples`."""
    return option("largest number of test samples; default: all", metavar="COUNT")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Which score is measured."""

    metric: str | None = option(
        "top1, cer, wer, psnr, cosine, perplexity, map50, or file.py:function of predictions and labels",
        metavar="NAME",
    )
    decode: str | None = option("file.py:function that makes a prediction from the outputs", metavar="FUNCTION")
    preprocess: str | None = option("file.py:function that makes arrays from an item of the data", metavar="FUNCTION")

    def given(self) -> dict[str, Any]:
        """Returns the arguments for the Python function."""
        return {"metric": self.metric, "decode": self.decode, "preprocess": self.preprocess}


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """How inputs are generated, and whether time is measured."""

    no_time: bool = flag("measure no time")
    dim: tuple[str, ...] = option("size of a symbolic dimension: batch=1; repeatable", default=(), metavar="NAME=SIZE")
    seed: int = option("seed of generated inputs", default=0)

    def given(self) -> dict[str, Any]:
        """Returns the arguments for the Python function."""
        from onnxsmith.verification.inputs import user_inputs as given

        return {"measure_time": not self.no_time, "sizes": given.sizes(self.dim), "seed": self.seed}


def kept(path: str | None) -> tuple[str, ...]:
    """Returns the entries of a keep-list; none without a path."""
    from onnxsmith.precision import keep_list

    return () if path is None else keep_list.read(path)
