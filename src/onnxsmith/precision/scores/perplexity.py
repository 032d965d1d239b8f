"""The perplexity of a language model."""

from __future__ import annotations

import math

import numpy as np

from onnxsmith.precision.scores.base import Pairs, Score


class Perplexity(Score):
    """exp of the mean negative log-likelihood of the expected tokens (natural logarithm).

    A prediction is scores of the vocabulary before softmax, […, tokens, vocabulary], and its label the expected token
    at each place, a negative number for none. Without a label, a prediction is the log-likelihoods themselves.
    """

    title = "perplexity"
    better = "lower"
    expects = "logits, with the expected token at each place as the label"

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
