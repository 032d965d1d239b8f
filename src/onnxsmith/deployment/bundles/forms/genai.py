"""Writes the bundle of `--for genai`: the folder that onnxruntime-genai loads, for text generation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onnxsmith.base.folders import OwnPath, copy
from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.deployment.bundles import clients, templates
from onnxsmith.deployment.bundles.content import Content, NamedPort
from onnxsmith.deployment.bundles.forms.base import NUMBERS, Form
from onnxsmith.deployment.bundles.tasks import text_tasks
from onnxsmith.deployment.bundles.tasks.base import mismatch, task

_PACKAGE = "onnxruntime-genai"
_TASK = "text-generation"
_COPIED = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "config.json",
           "generation_config.json", "vocab.json", "merges.txt", "added_tokens.json")  # fmt: skip
_SHOWN = 100
"""Counts the tokens of the example in the README. A choice."""
_CONTEXT = 2048
"""Sets the longest text, in tokens, if config.json does not set it. A choice."""


class Genai(Form):
    """Writes genai_config.json, the decoder with its caches, and the tokenizer."""

    client = "onnxruntime-genai"
    dtypes = NUMBERS
    tasks = (_TASK,)

    def refuse(self, content: Content) -> None:
        if content.task == "tensors":
            raise problem(
                "bundle/not-for-form",
                "the form genai is for text generation",
                where="--for genai",
                fix=f"give the folder of the pretrained model: --task {_TASK} --tokenizer FOLDER; "
                "for other models: --for python",
            )
        super().refuse(content)
        text_tasks.folder_of(content, "config.json", "tokenizer_config.json")
        caches = [port for port in content.inputs if text_tasks.is_cache(port)]
        if not caches or any(port.shape is None or len(port.shape) != 4 for port in caches):
            raise mismatch(
                _TASK,
                "genai needs inputs for caches (past_key_values.0.key, …) with four dimensions, which the model "
                "does not have",
                ", ".join(port.name for port in content.inputs),
                f"onnxsmith export FOLDER -o {content.file} --task text-generation-with-past",
            )

    def write(self, content: Content, folder: OwnPath) -> None:
        own = text_tasks.folder_of(content)
        for name in _COPIED:
            if (own / name).is_file():
                copy(own / name, OwnPath(folder / name))
        configured = config(content, own)
        written = json.dumps(configured, indent=1) + "\n"
        (folder / "genai_config.json").write_bytes(written.encode())
        task(content.task).record(content, folder)
        templates.write(folder, "golden.py", "shared/golden.py", **content.values())
        for name in ("verify.py", "README.md"):
            longest = min(_SHOWN, configured["model"]["context_length"])
            templates.write(folder, name, f"genai/{name}", **content.values(), longest=longest)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        name = "genai generator"
        if clients.version(_PACKAGE) is None:
            return [BundleCheck(name, "not run", f"{_PACKAGE} is not installed; pip install {_PACKAGE}")]
        with clients.bare_python(_PACKAGE, "numpy") as (_, words):
            done = clients.run(
                [*words, folder / "verify.py", "--json"],
                folder=folder,
                memory=clients.memory_for(content.model_bytes),
            )
        return [clients.replayed(name, f"{_PACKAGE} {clients.version(_PACKAGE)}", done, content)]


def config(content: Content, folder: Path) -> dict[str, Any]:
    """Returns the content of genai_config.json. Sizes come from the model's caches, everything else from the
    configuration of transformers."""
    held = {**text_tasks.settings(folder), **text_tasks.settings(folder, "generation_config.json")}
    keys = [port for port in content.inputs if text_tasks.is_cache(port) and port.name.endswith(".key")]
    shape = keys[0].shape or ()
    hidden = int(held.get("hidden_size", held.get("n_embd", 0)))
    context = int(held.get("max_position_embeddings", held.get("n_positions", _CONTEXT)))
    return {
        "model": {
            "type": str(text_tasks.settings(folder).get("model_type", "decoder")),
            "bos_token_id": _first(held.get("bos_token_id")),
            "eos_token_id": held.get("eos_token_id", 0),
            "pad_token_id": _first(held.get("pad_token_id"), held.get("eos_token_id")),
            "vocab_size": int(held.get("vocab_size", 0)),
            "context_length": context,
            "decoder": {
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                "filename": content.model_file,
                "head_size": shape[3],
                "hidden_size": hidden,
                "num_attention_heads": int(held.get("num_attention_heads", held.get("n_head", shape[1])) or 0),
                "num_hidden_layers": len(keys),
                "num_key_value_heads": shape[1],
                "inputs": {
                    **{port.name: port.name for port in _plain(content)},
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": content.outputs[0].name,
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {
            "do_sample": False,
            "max_length": context,
            "num_beams": 1,
            "past_present_share_buffer": False,
        },
    }


def _plain(content: Content) -> list[NamedPort]:
    return [port for port in content.inputs if not text_tasks.is_cache(port) and not port.optional]


def _first(*values: Any) -> int:
    """Returns the first token that is given, of a list its first element; 0 if no token is given."""
    for value in values:
        if value is not None:
            return int(value[0]) if isinstance(value, list) else int(value)
    return 0
