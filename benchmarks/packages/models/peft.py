"""peft: models of transformers and plain ones with adapters, as they are and merged."""

from __future__ import annotations

from typing import Any

import peft
import torch
import transformers

from packages.case import BATCH, Case

_TEXT = {**BATCH, "length": (9, 7, 16)}
_TOKENS = {0: "batch", 1: "length"}


def cases() -> list[Case]:
    """Batch and length are dynamic."""
    attention = ["query", "value"]
    return [
        _adapted("lora-bert", peft.LoraConfig(target_modules=attention, r=4)),
        _adapted("dora-bert", peft.LoraConfig(target_modules=attention, r=4, use_dora=True)),
        _adapted("loha-bert", peft.LoHaConfig(target_modules=attention, r=4)),
        _adapted("lokr-bert", peft.LoKrConfig(target_modules=attention, r=4)),
        _adapted(
            "ia3-bert", peft.IA3Config(target_modules=["query", "output.dense"], feedforward_modules=["output.dense"])
        ),
        _adapted("vera-bert", peft.VeraConfig(target_modules=attention, r=4, save_projection=False)),
        _adapted("oft-bert", peft.OFTConfig(target_modules=attention, oft_block_size=4)),
        _adapted("boft-bert", peft.BOFTConfig(target_modules=attention, boft_block_size=4)),
        _adapted("lora-bert-merged", peft.LoraConfig(target_modules=attention, r=4), merged=True),
        _adapted("lora-gpt2", peft.LoraConfig(target_modules=["c_attn"], r=4, fan_in_fan_out=True), "gpt2"),
        _adapted("prompt-tuning-gpt2", peft.PromptTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"), "gpt2"),
        _adapted("prefix-tuning-gpt2", peft.PrefixTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"), "gpt2"),
        Case(
            "lora-convolution",
            _convolution,
            lambda batch, height, width: (torch.rand(batch, 3, height, width),),
            ({0: "batch", 2: "height", 3: "width"},),
            {**BATCH, "height": (16, 24, 32), "width": (16, 24, 32)},
        ),
    ]


def _bert() -> Any:
    return transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=99,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=36,
            max_position_embeddings=64,
        )
    )


def _gpt2() -> Any:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=99,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=64,
            use_cache=False,
        )
    )


def _adapted(name: str, config: Any, base: str = "bert", merged: bool = False) -> Case:
    def build() -> torch.nn.Module:
        model: Any = peft.get_peft_model(_bert() if base == "bert" else _gpt2(), config)
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if parameter.requires_grad and "classifier" not in key:
                    parameter += 0.02 * torch.randn_like(parameter)  # as after training: adapters begin at nothing
        return model.merge_and_unload() if merged else model

    def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
        return {
            "input_ids": torch.randint(3, 99, (batch, length)),
            "attention_mask": torch.ones(batch, length, dtype=torch.long),
        }

    return Case(name, build, inputs, dict.fromkeys(("input_ids", "attention_mask"), _TOKENS), _TEXT)


def _convolution() -> torch.nn.Module:
    base = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 3, padding=1)
    )
    return peft.get_peft_model(base, peft.LoraConfig(target_modules=["0", "2"], r=2))
