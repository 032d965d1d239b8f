"""A language model over bytes, a transformer of 2.4 million parameters; trained here on the help topics of Python.

`pydoc_data.topics` is a part of each Python, and is what `help()` prints. A topic is for training, for calibration or
for the test, never for two of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from precision import training

NAME = "language"
METRIC = "perplexity"
BETTER = "lower"
STEPS = 700
BATCH = 16
CONTEXT = 128
"""Tokens of a run: bytes, of which those above 127 are one token, 127."""
WIDTH, HEADS, LAYERS, VOCABULARY = 256, 4, 3, 128
TEST, CALIBRATION = 200, 60
"""Runs; 25,400 tokens are predicted in the test."""


def prepare(folder: Path) -> Path:
    """Train the transformer, about six minutes on one core, and export it with a dynamic batch and length."""
    import torch
    from torch import nn
    from torch.nn import functional

    path = folder / "language.onnx"
    if path.exists():
        return path
    training.seeded()

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
            self.out = nn.Linear(WIDTH, WIDTH, bias=False)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            normal = self.before(x)
            heads = [
                layer(normal).unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)
                for layer in (self.query, self.key, self.value)
            ]
            mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.between(x))))

    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
            for weight in (self.tokens.weight, self.places.weight, self.head.weight):
                nn.init.normal_(weight, std=0.02)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.last(x))

    text = torch.from_numpy(np.concatenate(_topics(0)))

    def batch(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        starts = torch.randint(len(text) - CONTEXT - 1, (BATCH, 1), generator=generator)
        chosen = text[starts + torch.arange(CONTEXT + 1)]
        return chosen[:, :-1], chosen[:, 1:]

    network = training.train(Language(), batch, STEPS, rate=2e-3)
    dynamic = torch.export.Dim.DYNAMIC
    return training.export(network, (text[:64].reshape(2, 32),), path, ["tokens"], ({0: dynamic, 1: dynamic},))


def _topics(part: int) -> list[np.ndarray]:
    """The tokens of the topics of a part, int64: 0 for training, 1 for calibration, 2 for the test."""
    from pydoc_data.topics import topics

    names = sorted(topics)
    shares = training.split(len(names), (0.8, 0.05, 0.15))
    texts = [topics[names[index]].encode("utf-8") for index in sorted(shares[part])]
    return [np.minimum(np.frombuffer(text, np.uint8), VOCABULARY - 1).astype(np.int64) for text in texts]


def _items(part: int, count: int) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    """Windows at random places; what is to be predicted is the next token at each place."""
    text = np.concatenate(_topics(part))
    places = np.random.default_rng(part).choice(len(text) // CONTEXT - 1, count, replace=False)
    for place in places * CONTEXT:
        window = text[place : place + CONTEXT]
        yield {"tokens": window[None, :-1]}, window[1:]


def samples() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    """200 windows of 127 tokens each, and the tokens that follow."""
    return _items(2, TEST)


def calibration() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    """60 windows of other topics."""
    return _items(1, CALIBRATION)


def decode(outputs: dict[str, np.ndarray]) -> np.ndarray:
    """Log-likelihoods of all tokens at each place, float32 [127, 128]."""
    scores = outputs["output"][0].astype(np.float32)
    scores = scores - scores.max(-1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


def greedy(predictions: list[np.ndarray], labels: list[np.ndarray]) -> float:
    """The share of tokens that the network holds for the most likely one."""
    return float(np.mean(np.concatenate([scores.argmax(-1) for scores in predictions]) == np.concatenate(labels)))


ALSO = {"greedy": greedy}
