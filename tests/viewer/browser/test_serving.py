"""A page that is served from a port of this machine, and a report that links to a page, in Chromium."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.graph.files.save import save
from tests.test_cli import called
from tests.viewer.browser.conftest import of, until
from tests.viewer.models import chain

SERVED = (
    "from onnxsmith.cli import application; from onnxsmith.viewer import page_server; page_server.LARGE = 0; "
    "application.main()"
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a small model's page, as the command serves those over 50 MB, and the process."""
    save(
        chain([f"Relu@layers.{at}.act" for at in range(3)] + ["Abs@head.a", "Neg@head.b", "Sin@head.c"]),
        tmp_path / "m.onnx",
    )
    command = [sys.executable, "-c", SERVED, "view", "m.onnx", "--serve", "--json"]
    # BROWSER is what Python's webbrowser starts: nothing is to open here.
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "BROWSER": "true"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().strip(), process
        finally:
            process.kill()


def test_a_served_page_opens_and_moves(browser: Any, served: tuple[str, subprocess.Popen[str]]) -> None:
    address, process = served
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{20,}", address)
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith(address) else complaints.append(request.url))
    try:
        page.goto(address)
        assert page.title() == "m.onnx · onnxsmith view"
        before = of(page, "app.side.camera.x")
        box = page.locator("canvas[role=application]").bounding_box()
        page.mouse.move(box["x"] + 300, box["y"] + 300)
        page.mouse.down()
        page.mouse.move(box["x"] + 200, box["y"] + 250, steps=5)
        page.mouse.up()
        until(page, f"app.side.camera.x !== {before}")
        until(page, "location.hash.includes('camera=')")
        page.locator("canvas[role=application]").focus()
        page.keyboard.press("/")
        page.keyboard.type("op:sin")
        page.keyboard.press("Enter")
        until(page, "app.side.selection.length === 1")
        assert page.locator(".inspector h2").inner_text().startswith("Sin")
        until(page, "location.hash.includes('at=')")
        page.reload()
        until(page, "app.side.selection.length === 1")
        assert complaints == []
    finally:
        context.close()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    report = json.loads(out)
    assert report["verdict"] == "done"
    assert f"was served at {address}" in report["notes"]
    assert process.returncode == 0


def test_other_hosts_are_refused(served: tuple[str, subprocess.Popen[str]]) -> None:
    """A site whose name means this machine (DNS rebinding) sends its own name."""
    address, _ = served
    port = address.split(":")[2].partition("/")[0]
    with urllib.request.urlopen(address) as answer:
        assert answer.status == 200
    for host in ("evil.example", f"evil.example:{port}", "localhost", "127.0.0.1"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(address, headers={"Host": host}))
        assert caught.value.code == 404
        caught.value.close()


def test_a_row_of_a_report_leads_to_its_node(browser: Any, tmp_path: Path) -> None:
    save(
        chain([f"Relu@layers.{at}.act" for at in range(3)] + ["Abs@head.a", "Neg@head.b", "Sin@head.c"]),
        tmp_path / "m.onnx",
    )
    args = ("dump", "m.onnx", "--runtime", "reference", "--html", "r.html", "--view", "v.html")
    assert called(*args, cwd=tmp_path)[0] == 0
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page = context.new_page()
    try:
        page.goto((tmp_path / "r.html").as_uri())
        page.get_by_role("link", name="v5", exact=True).click()
        until(page, "app.side.selection.length === 1")
        assert page.url.startswith((tmp_path / "v.html").as_uri())
        assert page.locator(".inspector h2").inner_text().startswith("Sin")
        assert page.locator("select").evaluate("one => one.selectedOptions[0].text") == "largest magnitude"
    finally:
        context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_report_and_a_view_have_the_same_colours(browser: Any, tmp_path: Path, theme: str) -> None:
    save(chain(["Relu"]), tmp_path / "m.onnx")
    assert called("inspect", "m.onnx", "--html", "r.html", "--view", "v.html", cwd=tmp_path)[0] == 0
    context = browser.new_context(color_scheme=theme, offline=True)
    style = "() => { const s = getComputedStyle(document.body); return [s.color, s.backgroundColor, s.fontFamily]; }"
    try:
        page = context.new_page()
        found = []
        for name in ("r.html", "v.html"):
            page.goto((tmp_path / name).as_uri())
            found.append(page.evaluate(style))
    finally:
        context.close()
    assert found[0] == found[1]
    assert found[0][1] == ("rgb(246, 247, 249)" if theme == "light" else "rgb(18, 21, 26)")
