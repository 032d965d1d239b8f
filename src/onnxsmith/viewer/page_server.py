"""Serves a page on a local port, for pages that browsers open slowly from a file."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import secrets
import sys
import webbrowser
from dataclasses import replace

from onnxsmith.base.report.base import Report
from onnxsmith.base.result import Result
from onnxsmith.viewer.view import LARGE

_HOME = "127.0.0.1"


def serve(result: Result) -> Report:
    """Serves the page of a result until Ctrl-C if the page is large, and returns the report. A smaller page is not
    served, because it opens from its file."""
    report = result.report
    if len(result.page) <= LARGE:
        note = "not served: a page under 50 MB opens from its file"
        return replace(report, notes=(*report.notes, note))
    with server(result.page) as running:
        address = running.address
        sys.stderr.write(f"{address}\nCtrl-C ends it\n")
        webbrowser.open(address)
        with contextlib.suppress(KeyboardInterrupt):
            running.serve_forever()
    return replace(report, notes=(*report.notes, f"was served at {address}"))


class _Server(http.server.ThreadingHTTPServer):
    """Serves one page, under an address that cannot be guessed."""

    daemon_threads = True

    def __init__(self, page: bytes) -> None:
        self.page = page
        self.path = f"/{secrets.token_urlsafe(16)}"
        super().__init__((_HOME, 0), _Handler)

    @property
    def host(self) -> str:
        return f"{_HOME}:{self.server_address[1]}"

    @property
    def address(self) -> str:
        """Returns the address for a browser."""
        return f"http://{self.host}{self.path}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        # Another site can make its own name mean this machine; then the browser sends that name.
        if self.path != self.server.path or self.headers.get("Host") != self.server.host:
            self.send_error(404)
            return
        packed = "gzip" in (self.headers.get("Accept-Encoding") or "")
        page = self.server.page if packed else gzip.decompress(self.server.page)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("X-Content-Type-Options", "nosniff")
        with contextlib.suppress(ConnectionError):  # the browser has left, or loads the page again
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(page)

    do_HEAD = do_GET  # noqa: N815 — the name that the base class calls

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the name of the base class
        """Logs nothing, because the terminal is for the report."""


def server(page: str) -> _Server:
    """Returns a listening server."""
    return _Server(gzip.compress(page.encode(), compresslevel=1))
