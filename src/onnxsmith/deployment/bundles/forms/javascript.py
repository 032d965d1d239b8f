"""`--for web`, `transformers-js`: forms for browsers and Node.js."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from onnxsmith.base.folders import OwnPath, copy
from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.deployment.bundles import clients, nodejs, templates
from onnxsmith.deployment.bundles.content import Content, NamedPort
from onnxsmith.deployment.bundles.forms.base import NUMBERS, Form, not_for_form
from onnxsmith.deployment.bundles.tasks import text_tasks
from onnxsmith.deployment.bundles.tasks.base import PICTURES, TEXTS, task

_PACKAGE = "onnxruntime-web"
_UNKNOWN = "^1.20.0"
"""Is the version in package.json if no version ran here. A choice: the first version with int64 and float16 as
`model.mjs` uses them."""
_WASM = 2**32 - 2**28
"""Limits the bytes of a model that is run here: WebAssembly addresses 4 GB, and a run needs a part of them."""


_ARRAYS = {
    "float": "Float32Array", "double": "Float64Array", "int8": "Int8Array", "int16": "Int16Array",
    "int32": "Int32Array", "int64": "BigInt64Array", "uint16": "Uint16Array", "float16": "Uint16Array",
    "uint32": "Uint32Array", "uint64": "BigUint64Array",
}  # fmt: skip
"""Maps ONNX dtypes to the typed arrays of JavaScript that `model.mjs` takes, besides `Uint8Array`."""


def _example(content: Content, port: NamedPort) -> str:
    """Returns the shape and data of an input in JavaScript: zeros, at the sizes of the first recorded input."""
    value = content.cases[0].inputs.get(port.name) if content.cases else None
    if not isinstance(value, np.ndarray):
        return "shape: [/* sizes */], data"
    count = int(value.size)
    data = (
        f"Array({count}).fill('')"
        if port.dtype == "string"
        else f"new {_ARRAYS.get(port.dtype, 'Uint8Array')}({count})"
    )
    return f"shape: {list(value.shape)}, data: {data}"


class Web(Form):
    """Writes a folder with `model.mjs`, which runs in browsers and in Node.js, and a page that replays the golden
    data."""

    client = "onnxruntime-web in a browser or Node.js"
    folders = ("node_modules",)
    dtypes = (*NUMBERS, "string")
    tasks = ("tensors", *PICTURES)

    def write(self, content: Content, folder: OwnPath) -> None:
        found = nodejs.package(content, _PACKAGE)
        values = {
            **content.values(),
            "data": list(content.data_files),
            "ranges": [[name, [held.least, held.most]] for name, held in content.ranges.items()],
            "version": nodejs.version_of(found) if found is not None else _UNKNOWN,
            "example": {port.name: _example(content, port) for port in content.inputs if not port.optional},
        }
        templates.write(folder, "golden.mjs", "shared/golden.mjs", **values)
        for name in ("model.mjs", "replay.mjs", "verify.mjs", "page.mjs", "index.html", "package.json", "README.md"):
            templates.write(folder, name, f"web/{name}", **values)
        task(content.task).record(content, folder)
        task(content.task).write_javascript(content, folder)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        found, engine = nodejs.package(content, _PACKAGE), nodejs.node()
        names = ("JavaScript module", "page")
        missing = ""
        if found is None:
            missing = f"{_PACKAGE} was not found in node_modules: run npm install {_PACKAGE}, or give --node-modules"
        elif content.model_bytes > _WASM:
            missing = "the model is too large for WebAssembly's 4 GB"
        if found is None or missing:
            return [BundleCheck(name, "not run", missing) for name in names]
        return [self._in_node(folder, found, engine), self._in_browser(folder, found)]

    def _in_node(self, folder: Path, found: Path, engine: tuple[str, str] | None) -> BundleCheck:
        if engine is None:
            return BundleCheck("JavaScript module", "not run", "no Node.js 18 or later is installed")
        entry = (found / "dist" / "ort.wasm.bundle.min.mjs").resolve().as_uri()
        done = clients.run([engine[0], folder / "verify.mjs", "--json", entry], folder=folder)
        said = f"{_PACKAGE} {nodejs.version_of(found)} in Node.js {engine[1]}"
        return clients.replayed("JavaScript module", said, done)

    def _in_browser(self, folder: Path, found: Path) -> BundleCheck:
        if nodejs.browser() is None:
            return BundleCheck("page", "not run", "no Chromium is installed")
        done = nodejs.page(folder, found.parent)
        if done is None:
            return BundleCheck("page", "not run", "the browser gave no answer")
        return clients.replayed("page", f"{_PACKAGE} {nodejs.version_of(found)} in Chromium", done)


_TRANSFORMERS = "@huggingface/transformers"
_TRANSFORMERS_VERSION = "^4.0.0"
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
                why="pipeline() of transformers.js needs a task",
                fix=f"--task {TEXTS[0]}; or --task {TEXTS[1]}; or for other models --for web",
            )
        super().refuse(content)
        text_tasks.folder_of(content, "config.json", "tokenizer_config.json")

    def write(self, content: Content, folder: OwnPath) -> None:
        if content.data_files and content.data_files != (_DATA,):
            raise not_for_form(
                self.id(),
                f"its external data is in {', '.join(content.data_files)}, but transformers.js looks only for {_DATA}",
                content.title,
            )
        own = text_tasks.folder_of(content, "config.json", "tokenizer_config.json")
        for name in _COPIED:
            if (own / name).is_file():
                copy(own / name, OwnPath(folder / name))
        if content.data_files:
            config = dict(text_tasks.settings(own))
            config["transformers.js_config"] = {"use_external_data_format": {"model.onnx": 1}}
            (folder / "config.json").write_bytes((json.dumps(config, indent=1) + "\n").encode())
        task(content.task).record(content, folder)
        found = nodejs.package(content, _TRANSFORMERS)
        values = {
            **content.values(),
            "version": nodejs.version_of(found) if found is not None else _TRANSFORMERS_VERSION,
        }
        templates.write(folder, "golden.mjs", "shared/golden.mjs", **values)
        for name in ("verify.mjs", "package.json", "README.md"):
            templates.write(folder, name, f"transformers_js/{name}", **values)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        found, engine = nodejs.package(content, _TRANSFORMERS), nodejs.node()
        name = "transformers.js pipeline"
        if found is None:
            why = (
                f"{_TRANSFORMERS} was not found in node_modules: run npm install {_TRANSFORMERS}, or give "
                "--node-modules"
            )
            return [BundleCheck(name, "not run", why)]
        if engine is None:
            return [BundleCheck(name, "not run", "no Node.js 18 or later is installed")]
        entry = (found / "dist" / "transformers.node.mjs").resolve().as_uri()
        done = clients.run([engine[0], folder / "verify.mjs", "--json", entry], folder=folder)
        said = f"{_TRANSFORMERS} {nodejs.version_of(found)} in Node.js {engine[1]}"
        return [clients.replayed(name, said, done, content)]
