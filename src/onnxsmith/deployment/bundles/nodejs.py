"""Finds Node.js and its packages, and runs programs in Node.js and in a browser."""

from __future__ import annotations

import contextlib
import functools
import html
import http.server
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnxsmith.base import folders, user_files
from onnxsmith.deployment.bundles import clients
from onnxsmith.deployment.bundles.content import Content

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OLDEST = 18
"""Names the oldest supported Node.js: the generated code needs Object.hasOwn and Array.prototype.at, which 18 has."""


def package(content: Content, name: str) -> Path | None:
    """Returns the folder of an npm package. Looks in the folder that the user named, or in node_modules of the current
    folder or of its parents."""
    named = content.clients.get("node_modules")
    here = Path.cwd()
    places = [named] if named is not None else [parent / "node_modules" for parent in (here, *here.parents)]
    return next((place / name for place in places if (place / name / "package.json").is_file()), None)


def version_of(found: Path) -> str:
    """Returns the version of a package."""
    return str(user_files.parse_json(user_files.read_utf8(found / "package.json"))["version"])


@functools.cache
def node() -> tuple[str, str] | None:
    """Returns the path and version of Node.js; None if Node.js is missing or too old."""
    path = shutil.which("node")
    if path is None:
        return None
    done = clients.run([path, "--version"], folder=Path(tempfile.gettempdir()))
    found = re.match(r"v(\d+)\.\S+", done.output)
    return (path, found[0]) if found and int(found[1]) >= _OLDEST else None


def browser() -> str | None:
    """Returns the path of a browser that runs without a screen; None if there is no such browser."""
    return next((found for name in _BROWSERS if (found := shutil.which(name)) is not None), None)


def page(folder: Path, modules: Path) -> clients.Finished | None:
    """Opens index.html of a folder in a browser, from a server on this machine, and returns the text of the page.
    Returns None if the browser did not show the page: in some containers a browser cannot start.

    The server serves the folder's files, and packages under /node_modules.
    """
    path = browser()
    assert path is not None
    with _served(folder, modules) as address, folders.temporary() as profile:
        # Without --no-sandbox a browser does not start in most containers; the page is only of this folder.
        words = [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 f"--user-data-dir={profile}", "--virtual-time-budget=60000", "--timeout=60000", "--dump-dom",
                 address]  # fmt: skip
        done = clients.run(words, folder=folder)
    said = re.search(r'data-said="([^"]*)"', done.output)
    failed = re.search(r'data-failed="([^"]*)"', done.output)
    if said is not None:
        return clients.Finished(0, html.unescape(said[1]), "")
    return clients.Finished(1, "", html.unescape(failed[1])) if failed is not None else None


class _Handler(http.server.SimpleHTTPRequestHandler):
    modules: Path
    extensions_map = {  # noqa: RUF012 — as in the base class
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def translate_path(self, path: str) -> str:
        inside = path.split("?")[0].removeprefix("/node_modules/")
        if inside != path.split("?")[0] and ".." not in inside.split("/"):
            return str(self.modules / inside)
        return super().translate_path(path)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the name in the base class
        """Prints nothing, because commands do not print."""


@contextlib.contextmanager
def _served(folder: Path, modules: Path) -> Iterator[str]:
    handler = type("Handler", (_Handler,), {"modules": modules})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/index.html"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
