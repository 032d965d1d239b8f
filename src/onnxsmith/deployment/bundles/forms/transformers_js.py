"""Writes the bundle of `--for transformers-js`: the folder that `pipeline()` of @huggingface/transformers loads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.deployment.bundles import clients, nodejs, templates
from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.forms.base import NUMBERS, Form, not_for_form
from onnxsmith.deployment.bundles.tasks import _texts
from onnxsmith.deployment.bundles.tasks.base import TEXTS, task

_PACKAGE = "@huggingface/transformers"
_UNKNOWN = "^4.0.0"
"""Is the version in package.json if no version ran here. A choice: the major version that loads this layout."""
_COPIED = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "chat_template.jinja", "vocab.txt", "vocab.json", "merges.txt", "added_tokens.json",
)  # fmt: skip
_DATA = "model.onnx_data"
"""Is the only name under which transformers.js looks for external data."""


class TransformersJs(Form):
    """Writes config.json, tokenizer files and onnx/model.onnx."""

    client = "@huggingface/transformers"
    folders = ("node_modules",)
    dtypes = NUMBERS
    tasks = TEXTS

    def model_file(self, name: str) -> str:
        return "onnx/model.onnx"

    def refuse(self, content: Content) -> None:
        if content.task == "tensors":
            raise problem(
                "bundle/not-for-form",
                "the form transformers-js needs a task",
                where="--for transformers-js",
                why="pipeline() of transformers.js is made for a task",
                fix=f"--task {TEXTS[0]}, or --task {TEXTS[1]}; for other models: --for web",
            )
        super().refuse(content)
        _texts.folder_of(content, "config.json", "tokenizer_config.json")

    def write(self, content: Content, folder: Path) -> None:
        if content.data_files and content.data_files != (_DATA,):
            raise not_for_form(
                self.id(),
                f"its external data is in {', '.join(content.data_files)}, and transformers.js looks for {_DATA} only",
                content.title,
            )
        own = _texts.folder_of(content, "config.json", "tokenizer_config.json")
        for name in _COPIED:
            if (own / name).is_file():
                shutil.copyfile(own / name, folder / name)
        if content.data_files:
            config = dict(_texts.settings(own))
            config["transformers.js_config"] = {"use_external_data_format": {"model.onnx": 1}}
            (folder / "config.json").write_bytes((json.dumps(config, indent=1) + "\n").encode())
        task(content.task).record(content, folder)
        found = nodejs.package(content, _PACKAGE)
        values = {**content.values(), "version": nodejs.version_of(found) if found is not None else _UNKNOWN}
        templates.write(folder / "golden.mjs", "shared/golden.mjs", **values)
        for name in ("verify.mjs", "package.json", "README.md"):
            templates.write(folder / name, f"transformers_js/{name}", **values)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        found, engine = nodejs.package(content, _PACKAGE), nodejs.node()
        name = "transformers.js pipeline"
        if found is None:
            why = f"no {_PACKAGE} in node_modules here; npm install {_PACKAGE}, or give --node-modules"
            return [BundleCheck(name, "not run", why)]
        if engine is None:
            return [BundleCheck(name, "not run", "no Node.js 18 or later is installed")]
        entry = (found / "dist" / "transformers.node.mjs").resolve().as_uri()
        done = clients.run([engine[0], folder / "verify.mjs", "--json", entry], folder=folder)
        said = f"{_PACKAGE} {nodejs.version_of(found)} in Node.js {engine[1]}"
        return [clients.replayed(name, said, done)]
