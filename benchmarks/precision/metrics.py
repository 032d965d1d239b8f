"""Metrics of predictions against labels, for the benchmark alone: it does not judge onnxsmith by its own code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Metric = Callable[[list[Any], list[Any]], float]
CLOSEST = 1e-10
"""Mean square error at which PSNR ends: 100 dB."""


def top1(predictions: list[int], labels: list[int]) -> float:
    """The share of classes that are right."""
    return float(np.mean(np.array(predictions) == np.array(labels)))


def cer(predictions: list[str], labels: list[str]) -> float:
    """Edits that make the texts right, a character of the labels."""
    return _edits(predictions, labels)


def wer(predictions: list[str], labels: list[str]) -> float:
    """Edits of words that make the texts right, a word of the labels."""
    return _edits([text.split() for text in predictions], [text.split() for text in labels])


def _edits(predictions: list[Any], labels: list[Any]) -> float:
    wrong = sum(edit_distance(one, other) for one, other in zip(predictions, labels, strict=True))
    return wrong / sum(map(len, labels))


def edit_distance(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Levenshtein's distance."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(other, 1):
            before, row[j] = row[j], min(before + (left != right), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def psnr(predictions: list[np.ndarray], labels: list[np.ndarray]) -> float:
    """Mean of the pictures' PSNR, dB, of a white of 1."""
    errors = [float(np.mean((one - other) ** 2)) for one, other in zip(predictions, labels, strict=True)]
    return float(np.mean(-10 * np.log10(np.maximum(errors, CLOSEST))))


def cosine(predictions: list[np.ndarray], labels: list[np.ndarray]) -> float:
    """Mean cosine of predictions and labels."""
    return float(
        np.mean(
            [
                np.vdot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other))
                for one, other in zip(predictions, labels, strict=True)
            ]
        )
    )


def perplexity(predictions: list[np.ndarray], labels: list[np.ndarray]) -> float:
    """Of log-likelihoods [places, tokens] and the tokens that came: exp of the mean negative log-likelihood."""
    found = [scores[np.arange(len(tokens)), tokens] for scores, tokens in zip(predictions, labels, strict=True)]
    return float(np.exp(-np.mean(np.concatenate(found).astype(np.float64))))


METRICS: dict[str, Metric] = {
    "top1": top1, "cer": cer, "wer": wer, "psnr": psnr, "cosine": cosine, "perplexity": perplexity,
}  # fmt: skip
