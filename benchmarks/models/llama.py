"""Llama stacks of N equal layers, tiny in width, for what depends on the number of nodes and not on weights.

    python benchmarks/models/llama.py LAYERS TARGET.onnx

Transformers' Llama as the new exporter translates it, not optimised: grouped queries, an attention mask, the length of
the sequence open. 145 nodes a layer (184 with Constant) and 87 around them: 232 at one layer, 18,647 at 128.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import torch
import transformers as hf

sys.path.insert(0, str(Path(__file__).parent.parent))

from models.architectures import BATCH, SEQUENCE, Text

LAYERS = (1, 2, 4, 8, 16, 32, 64, 128)
OPEN = {1: "sequence"}


def network(layers: int) -> Text:
    """The stack; random weights, the same in every run."""
    torch.manual_seed(0)
    config = hf.LlamaConfig(
        vocab_size=256,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return Text(hf.LlamaForCausalLM(config), use_cache=False).eval()  # type: ignore[return-value]


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", type=int)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    inputs = (torch.randint(3, 200, (BATCH, SEQUENCE)), torch.ones(BATCH, SEQUENCE, dtype=torch.int64))
    with torch.no_grad():
        torch.onnx.export(
            network(given.layers),
            inputs,
            given.target,
            input_names=["input_ids", "attention_mask"],
            dynamic_shapes=(OPEN, OPEN),
            dynamo=True,
            optimize=False,
            external_data=False,
            verbose=False,
        )


if __name__ == "__main__":
    main()
