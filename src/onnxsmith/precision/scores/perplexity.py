"""The perplexity of a language model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxsmith.precision.scores.base import Pairs, Score, is_whole, said


class Perplexity(Score):
    """exp of the mean negative log-likelihood of the expected tokens (natural logarithm).

    A prediction is scores of the vocabulary before softmax, […, tokens, vocabulary], and its label the expected token
    at each place, a negative number for none. Without a label, a prediction of one axis is the log-likelihoods
    themselves; of others the most likely tokens of the given model are the labels.
    """

    title = "perplexity"
    better = "lower"
    expects = "logits, with the expected token at each place as the label"

    def as_label(self, prediction: Any) -> Any:
        scores = np.asarray(prediction)
        return np.argmax(scores, axis=-1) if scores.ndim > 1 else None

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        tokens, scores = np.ravel(np.asarray(label)), np.asarray(prediction)
        if not is_whole(tokens):
            return f"is {said(label)}, not the numbers of tokens"
        rows, vocabulary = scores.size // max(1, scores.shape[-1]), scores.shape[-1]
        if tokens.size != rows:
            return f"has {tokens.size:,} tokens, the prediction has {rows:,}"
        if tokens.size and int(tokens.max()) >= vocabulary:
            return f"has the token {int(tokens.max())}; the vocabulary of the prediction ends at {vocabulary - 1}"
        return "" if (tokens >= 0).any() else "has no token, all numbers are negative"

    def value(self, pairs: Pairs) -> float:
        total, count = 0.0, 0
        for found, wanted in pairs:
            scores = np.asarray(found, np.float64)
            if wanted is not None:
                tokens = np.ravel(np.asarray(wanted)).astype(np.int64)
                flat = scores.reshape(-1, scores.shape[-1])[tokens >= 0]
                tokens = tokens[tokens >= 0]
                peak = flat.max(axis=-1, keepdims=True)
                norm = np.log(np.exp(flat - peak).sum(axis=-1)) + peak[:, 0]
                scores = flat[np.arange(len(tokens)), tokens] - norm
            total -= float(scores.sum())
            count += scores.size
        return _exp(total / count) if count else float("nan")


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
