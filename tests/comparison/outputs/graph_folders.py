"""Makes tiny models of transformers with random weights, and folders of their graphs in the layouts of other tools."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

import onnxsmith
from onnxsmith.exporter.pretrained.original_calls import CallOfPart

VOCABULARY = 64
_SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
          "num_attention_heads": 4, "max_position_embeddings": 128}  # fmt: skip
_ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_SPREAD = 0.4
"""Scales the random weights, so that positions and masks matter as in a trained model. A choice."""


def _llama(kind: str, **more: Any) -> Callable[[], Any]:
    def make() -> Any:
        config = getattr(transformers, f"{kind}Config")(**_SIZES, **_ENDS, num_key_value_heads=2, **more)
        return getattr(transformers, f"{kind}ForCausalLM")(config)

    return make


def _gpt2() -> Any:
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=128, **_ENDS)
    return transformers.GPT2LMHeadModel(config)


def _built() -> Any:
    """Makes a model for onnxruntime-genai's builder: its smallest heads have 16 numbers."""
    sizes = {**_SIZES, "hidden_size": 64, "vocab_size": 2 * VOCABULARY}
    config = transformers.LlamaConfig(**sizes, **_ENDS, num_key_value_heads=2)
    return transformers.LlamaForCausalLM(config)


def _bert() -> Any:
    return transformers.BertModel(transformers.BertConfig(**_SIZES, pad_token_id=0))


def _distilbert() -> Any:
    config = transformers.DistilBertConfig(
        vocab_size=VOCABULARY, dim=32, hidden_dim=48, n_layers=2, n_heads=4, max_position_embeddings=64, num_labels=3
    )
    return transformers.DistilBertForSequenceClassification(config)


def _vit() -> Any:
    config = transformers.ViTConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8
    )
    return transformers.ViTForImageClassification(config)


def _t5() -> Any:
    config = transformers.T5Config(
        vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=2,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def _bart() -> Any:
    config = transformers.BartConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64,
        decoder_start_token_id=2, **_ENDS,
    )  # fmt: skip
    return transformers.BartForConditionalGeneration(config)


def _whisper() -> Any:
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=8, max_source_positions=20,
        max_target_positions=40, decoder_start_token_id=1, **_ENDS,
    )  # fmt: skip
    return transformers.WhisperForConditionalGeneration(config)


MODELS: Mapping[str, Callable[[], Any]] = {
    "llama": _llama("Llama"), "qwen2": _llama("Qwen2"), "mistral": _llama("Mistral", sliding_window=None),
    "gpt2": _gpt2, "built": _built, "t5": _t5, "bart": _bart, "whisper": _whisper, "bert": _bert,
    "distilbert": _distilbert, "vit": _vit,
}  # fmt: skip


def original(name: str, folder: Path, seed: int = 0) -> Any:
    """Saves a model with random weights in the folder, and returns it."""
    torch.manual_seed(seed)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, _SPREAD)
    model.save_pretrained(folder)
    return model


def tokenizer(folder: Path, words: Sequence[str] = ()) -> None:
    """Writes a tokenizer of words into the folder."""
    listed = ["[PAD]", "[BOS]", "[EOS]", "[UNK]", *(words or ("the", "quick", "brown", "fox", "lazy", "dogs"))]
    vocab = {word: at for at, word in enumerate(listed)}
    content = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(content))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "[EOS]", "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


@dataclass
class Ports:
    """The inputs of a graph with their dynamic axes, and its outputs, by the names in the file and in the model."""

    inputs: dict[str, torch.Tensor]
    outputs: list[tuple[str, str]]


def caches(model: Any, which: str = "", batch: int = 2, length: int = 4) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields the caches of a decoder: name and example."""
    config = model.config.get_text_config(decoder=True)
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "d_kv", None) or config.hidden_size // config.num_attention_heads
    for layer in range(config.num_hidden_layers):
        for kind in ("key", "value"):
            yield f"past_key_values.{layer}.{which}{kind}", torch.randn(batch, heads, length, size)


def present(names: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the outputs of a decoder with these caches."""
    return [("logits", "logits"), *((name.replace("past_key_values", "present"),) * 2 for name in names)]


def ids(batch: int = 2, length: int = 3) -> torch.Tensor:
    """Returns random tokens, [batch, length]."""
    return torch.randint(3, VOCABULARY, (batch, length))


def export(
    model: Any, ports: Ports, path: Path, *, has_encoder: bool, wrap: Callable[[Any], Any] = lambda it: it
) -> Path:
    """Exports the part of the model with these ports. `wrap` changes the part, to plant a fault."""
    shared = {"input_ids": "decoder_input_ids"} if has_encoder and ports.outputs[0][0] == "logits" else {}
    names = [shared.get(name, name) for name in ports.inputs]
    call = CallOfPart(model, names, [(own, "float", False) for _, own in ports.outputs], has_encoder=has_encoder)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnxsmith.export(
        wrap(call).eval(), tuple(ports.inputs.values()), output=path, input_names=[*ports.inputs],
        output_names=[name for name, _ in ports.outputs], dynamic=_dynamic(ports.inputs), verify=False,
    )  # fmt: skip
    return path


def _dynamic(inputs: Mapping[str, torch.Tensor]) -> dict[str, dict[int, str]]:
    past = any(".decoder." in name or (name.startswith("past") and ".encoder." not in name) for name in inputs)
    found = {}
    for name, value in inputs.items():
        axes = {0: "batch_size"}
        if name.startswith("past"):
            axes[2] = "encoder_sequence_length" if ".encoder." in name else "past_sequence_length"
        elif name in ("encoder_hidden_states", "encoder_attention_mask"):
            axes[1] = "encoder_sequence_length"
        elif value.dim() == 2 and value.shape[1] > 1:
            axes[1] = (
                "past_sequence_length + sequence_length" if name == "attention_mask" and past else "sequence_length"
            )
        found[name] = axes
    return found


def decoder(model: Any, path: Path, *, positions: bool = False, wrap: Callable[[Any], Any] = lambda it: it) -> Path:
    """Exports a decoder that makes all calls."""
    held = dict(caches(model))
    inputs = {"input_ids": ids(), "attention_mask": torch.ones(2, 7, dtype=torch.int64)}
    if positions:
        inputs["position_ids"] = torch.arange(4, 7).expand(2, 3).contiguous()
    return export(model, Ports({**inputs, **held}, present([*held])), path, has_encoder=False, wrap=wrap)


def two_decoders(model: Any, folder: Path) -> None:
    """Exports a decoder for the first call and one for later calls."""
    held = dict(caches(model))
    mask = torch.ones(2, 7, dtype=torch.int64)
    first = Ports({"input_ids": ids(), "attention_mask": mask[:, :3]}, present([*held]))
    export(model, first, folder / "decoder_model.onnx", has_encoder=False)
    later = Ports({"input_ids": ids(2, 1), "attention_mask": mask[:, :5], **held}, present([*held]))
    export(model, later, folder / "decoder_with_past_model.onnx", has_encoder=False)


def with_encoder(model: Any, folder: Path) -> None:
    """Exports an encoder, a decoder for the first call and one for later calls."""
    width = model.config.d_model
    if model.main_input_name == "input_features":
        inputs = {"input_features": torch.randn(2, model.config.num_mel_bins, 2 * model.config.max_source_positions)}
        seen, length = {}, model.config.max_source_positions
    else:
        inputs = {"input_ids": ids(2, 5), "attention_mask": torch.ones(2, 5, dtype=torch.int64)}
        seen, length = {"encoder_attention_mask": torch.ones(2, 5, dtype=torch.int64)}, 5
    encoder = Ports(inputs, [("last_hidden_state", "encoder_hidden_states")])
    export(model, encoder, folder / "encoder_model.onnx", has_encoder=True)
    own, cross = dict(caches(model, "decoder.")), dict(caches(model, "encoder.", length=length))
    both = sorted([*own, *cross], key=lambda name: (name.split(".")[1], name))
    hidden = {"encoder_hidden_states": torch.randn(2, length, width)}
    first = Ports({**seen, "input_ids": ids(), **hidden}, present(both))
    export(model, first, folder / "decoder_model.onnx", has_encoder=True)
    later = Ports({**seen, "input_ids": ids(2, 1), **{name: {**own, **cross}[name] for name in both}}, present([*own]))
    export(model, later, folder / "decoder_with_past_model.onnx", has_encoder=True)


def genai_config(model: Any, folder: Path) -> None:
    """Writes the configuration of onnxruntime-genai for `model.onnx`."""
    config = model.config
    content = {
        "model": {
            "type": config.model_type, "vocab_size": VOCABULARY, "eos_token_id": 2, "bos_token_id": 1,
            "pad_token_id": 0,            "context_length": 128,
            "decoder": {
                "filename": "model.onnx", "num_hidden_layers": config.num_hidden_layers,
                "inputs": {
                    "input_ids": "input_ids", "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits", "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {"max_length": 128},
    }  # fmt: skip
    (folder / "genai_config.json").write_text(json.dumps(content))


def single(
    model: Any, folder: Path, inputs: Mapping[str, torch.Tensor], outputs: Sequence[str], path: str = "model.onnx"
) -> None:
    """Exports a model that is one graph."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    axes = {
        name: {0: "batch_size", **({1: "sequence_length"} if value.dim() == 2 else {})}
        for name, value in inputs.items()
    }
    onnxsmith.export(
        _Results(model, outputs).eval(), (), dict(inputs), output=folder / path, dynamic=axes, verify=False
    )


class _Results(torch.nn.Module):
    def __init__(self, model: Any, outputs: Sequence[str]) -> None:
        super().__init__()
        self.model, self.outputs = model, tuple(outputs)

    def forward(self, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        result = self.model(**given)
        return {name: result[name] for name in self.outputs}


def copied(folder: Path, to: Path) -> Path:
    """Returns a copy of a folder, to plant a fault in it."""
    shutil.copytree(folder, to)
    return to
