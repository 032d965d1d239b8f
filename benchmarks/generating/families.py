"""One tiny model of each family of transformers that keeps a state between two calls, made from its configuration."""

from __future__ import annotations

from typing import Any

_TEXT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_MAMBA = {
    "mamba_d_state": 8,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 8,
}
_SEQ2SEQ = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
_T5 = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 40,
    "num_layers": 2,
    "num_heads": 4,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}
_SLIDING = ["sliding_attention", "full_attention"]

FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": (
        "text-generation",
        "gpt2",
        {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    ),
    "llama": ("text-generation", "llama", _TEXT),
    "mistral, window 4": ("text-generation", "mistral", {**_TEXT, "sliding_window": 4}),
    "mistral, window 64": ("text-generation", "mistral", {**_TEXT, "sliding_window": 64}),
    "gemma2, window 4": ("text-generation", "gemma2", {**_TEXT, "sliding_window": 4, "layer_types": _SLIDING}),
    "gemma3, window 4": ("text-generation", "gemma3_text", {**_TEXT, "sliding_window": 4, "layer_types": _SLIDING}),
    "gpt-oss, window 4": (
        "text-generation",
        "gpt_oss",
        {**_TEXT, **_EXPERTS, "sliding_window": 4, "layer_types": _SLIDING},
    ),
    "jamba": (
        "text-generation",
        "jamba",
        {
            **_TEXT,
            **_EXPERTS,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "mamba_d_state": 8,
            "mamba_dt_rank": 4,
            "use_mamba_kernels": False,
        },
    ),
    "falcon-h1": ("text-generation", "falcon_h1", {**_TEXT, **_MAMBA, "mamba_d_ssm": 64}),
    "bamba": ("text-generation", "bamba", {**_TEXT, **_MAMBA, "attn_layer_indices": [1]}),
    "granite-moe-hybrid": (
        "text-generation",
        "granitemoehybrid",
        {**_TEXT, **_EXPERTS, **_MAMBA, "layer_types": ["mamba", "attention"], "shared_intermediate_size": 16},
    ),
    "lfm2": (
        "text-generation",
        "lfm2",
        {**_TEXT, "layer_types": ["conv", "full_attention"], "block_multiple_of": 8, "conv_L_cache": 3},
    ),
    "qwen3-next": (
        "text-generation",
        "qwen3_next",
        {
            **_TEXT,
            **_EXPERTS,
            "layer_types": ["linear_attention", "full_attention"],
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "shared_expert_intermediate_size": 16,
        },
    ),
    "zamba2": (
        "text-generation",
        "zamba2",
        {
            **_TEXT,
            "num_key_value_heads": 4,
            "mamba_d_state": 8,
            "mamba_ngroups": 1,
            "n_mamba_heads": 4,
            "mamba_headdim": 16,
            "num_mem_blocks": 1,
            "hybrid_layer_ids": [1],
            "layers_block_type": ["mamba", "hybrid"],
            "use_mem_rope": False,
            "adapter_rank": 4,
            "chunk_size": 8,
        },
    ),
    "nemotron-h": (
        "text-generation",
        "nemotron_h",
        {
            **_TEXT,
            "layers_block_type": ["mamba", "attention"],
            "ssm_state_size": 8,
            "mamba_num_heads": 4,
            "mamba_head_dim": 16,
            "n_groups": 1,
            "chunk_size": 8,
        },
    ),
    "minimax": (
        "text-generation",
        "minimax",
        {**_TEXT, **_EXPERTS, "layer_types": ["linear_attention", "full_attention"], "block_size": 8},
    ),
    "mamba": (
        "text-generation",
        "mamba",
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "time_step_rank": 4},
    ),
    "mamba2": (
        "text-generation",
        "mamba2",
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "state_size": 8,
            "num_heads": 4,
            "head_dim": 16,
            "n_groups": 1,
            "chunk_size": 8,
        },
    ),
    "falcon-mamba": (
        "text-generation",
        "falcon_mamba",
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "time_step_rank": 4},
    ),
    "recurrent-gemma": (
        "text-generation",
        "recurrent_gemma",
        {**_TEXT, "lru_width": 32, "attention_window_size": 4, "block_types": ["recurrent", "attention"]},
    ),
    "rwkv": (
        "text-generation",
        "rwkv",
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32},
    ),
    "bart": ("text2text-generation", "bart", _SEQ2SEQ),
    "t5": ("text2text-generation", "t5", _T5),
    "whisper": (
        "automatic-speech-recognition",
        "whisper",
        {**_SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 64},
    ),
    "moonshine": (
        "automatic-speech-recognition",
        "moonshine",
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "intermediate_size": 40,
            "encoder_num_hidden_layers": 2,
            "decoder_num_hidden_layers": 2,
            "encoder_num_attention_heads": 4,
            "decoder_num_attention_heads": 4,
            "max_position_embeddings": 64,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
    ),
}
"""Name → task, kind of model, configuration."""


def configuration(name: str) -> Any:
    """The configuration of a family, without weights."""
    import transformers

    _, kind, values = FAMILIES[name]
    return transformers.AutoConfig.for_model(kind, **values)
