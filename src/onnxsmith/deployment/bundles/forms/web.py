"""Writes the bundle of `--for web`: an ES module and a page, for onnxruntime-web."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.deployment.bundles import clients, nodejs, templates
from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.forms.base import NUMBERS, Form
from onnxsmith.deployment.bundles.tasks.base import PICTURES, task

_PACKAGE = "onnxruntime-web"
_UNKNOWN = "^1.20.0"
"""Is the version in package.json if no version ran here. A choice: the first version with int64 and float16 as
`model.mjs` uses them."""
_WASM = 2**32 - 2**28
"""Limits the bytes of a model that is run here: WebAssembly addresses 4 GB, and a run needs a part of them."""


class Web(Form):
    """Writes a folder with `model.mjs`, which runs in browsers and in Node.js, and a page that replays the golden
    data."""

    client = "onnxruntime-web in a browser or Node.js"
    folders = ("node_modules",)
    dtypes = (*NUMBERS, "string")
    tasks = ("tensors", *PICTURES)

    def write(self, content: Content, folder: Path) -> None:
        found = nodejs.package(content, _PACKAGE)
        values = {
            **content.values(),
            "data": list(content.data_files),
            "ranges": [[name, [held.least, held.most]] for name, held in content.ranges.items()],
            "version": nodejs.version_of(found) if found is not None else _UNKNOWN,
        }
        templates.write(folder / "golden.mjs", "shared/golden.mjs", **values)
        for name in ("model.mjs", "replay.mjs", "verify.mjs", "page.mjs", "index.html", "package.json", "README.md"):
            templates.write(folder / name, f"web/{name}", **values)
        task(content.task).record(content, folder)
        task(content.task).write_javascript(content, folder)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        found, engine = nodejs.package(content, _PACKAGE), nodejs.node()
        names = ("JavaScript module", "page")
        missing = ""
        if found is None:
            missing = f"no {_PACKAGE} in node_modules here; npm install {_PACKAGE}, or give --node-modules"
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
