"""The configuration of a tiny model of texts, which the tests of states share."""

from __future__ import annotations

TEXT = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 20,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
