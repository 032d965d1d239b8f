"""Tiny models for text with seeded random weights, and a tokenizer that is trained here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SENTENCES = [
    "the quick brown fox jumps over the lazy dog",
    "a model is exported, verified and handed over",
    "the same tokens come out on every machine",
    "numbers differ in the last places only",
]
SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
}


def tokenizer(folder: Path) -> Any:
    """A byte-level BPE tokenizer, trained on a few sentences and saved as transformers does."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(SENTENCES, trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )
    fast.save_pretrained(folder)
    return fast


def language_model(folder: Path) -> Any:
    """A LlamaForCausalLM of two layers in a folder, with its tokenizer."""
    import torch
    import transformers

    folder.mkdir(exist_ok=True)
    words = tokenizer(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        **SHAPE,
        vocab_size=len(words),
        num_key_value_heads=2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.4,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(folder)
    return model


def classifier(folder: Path) -> Any:
    """A BertForSequenceClassification of two layers in a folder, with its tokenizer."""
    import torch
    import transformers

    folder.mkdir(exist_ok=True)
    words = tokenizer(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        **SHAPE,
        vocab_size=len(words),
        num_labels=3,
        id2label={0: "bad", 1: "so-so", 2: "good"},
        pad_token_id=0,
        initializer_range=0.4,
    )
    model = transformers.BertForSequenceClassification(config).eval()
    model.save_pretrained(folder)
    return model
