"""A decoder of one layer in ONNX's text form, and folders with it: graphs of a generated text without torch."""

from __future__ import annotations

import json
from pathlib import Path

from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

_HEAD = '<ir_version: 10, opset_import: ["": 20]> '
_WORDS = ", ".join(f"{((7 * at * at + 3 * at) % 19 - 9) / 6:.4f}" for at in range(32))
_VALUES = ", ".join(f"{((5 * at * at + at) % 17 - 8) / 7:.4f}" for at in range(16))
_OUT = ", ".join(f"{((3 * at * at + 5 * at) % 23 - 11) / 5:.4f}" for at in range(32))
DECODER = (
    _HEAD + "g (int64[b,s] input_ids, float[b,1,p,4] past_key_0, float[b,1,p,4] past_value_0) => "
    "(float[b,s,8] logits, float[b,1,t,4] present_key_0, float[b,1,t,4] present_value_0) "
    f"<float[8,4] words = {{{_WORDS}}}, float[4,4] values = {{{_VALUES}}}, float[4,8] out = {{{_OUT}}}, "
    "int64[1] one = {1}> {"
    " w = Gather(words, input_ids) k = Unsqueeze(w, one) v = MatMul(k, values)"
    " present_key_0 = Concat<axis=2>(past_key_0, k)"
    " present_value_0 = Concat<axis=2>(past_value_0, v)"
    " turned = Transpose<perm=[0,1,3,2]>(present_key_0) scores = MatMul(k, turned) shares = Softmax<axis=-1>(scores)"
    " mixed = MatMul(shares, present_value_0) flat = Squeeze(mixed, one) logits = MatMul(flat, out) }"
)
CONFIG = {"model_type": "toy", "vocab_size": 8, "eos_token_id": 2}


def folder(path: Path, text: str = DECODER, name: str = "model.onnx", config: object = CONFIG) -> Path:
    """Writes a folder with a decoder and its configuration."""
    path.mkdir(parents=True, exist_ok=True)
    save(from_text(text), path / name)
    (path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return path
