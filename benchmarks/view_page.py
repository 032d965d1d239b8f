"""Opens a model of 20,000 nodes in the page of `onnxsmith view` and in Netron, in the same browser and the same run:
time to the first picture, frames a second while panning and zooming, memory of the page.

Needs Chromium on PATH, and the packages playwright and netron (`pip install playwright netron`; no browser is
downloaded). Our page is opened from disk, Netron's from its own server on this machine. Frames are counted by
requestAnimationFrame while real pointer and wheel events arrive; memory is what the renderer's processes hold for
themselves (Private_Clean and Private_Dirty of smaps_rollup)."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

SIZE = {"width": 1280, "height": 800}
SECONDS = 4.0
"""Time of each movement: some 200 frames. A choice."""
PATIENCE = 300.0
"""Seconds after which a page that has shown nothing is given up. A choice."""

COUNT = """() => {
  const stamps = []; let going = true;
  const step = (now) => { stamps.push(now); if (going) requestAnimationFrame(step); };
  requestAnimationFrame(step);
  window.__stop = () => { going = false; return stamps; };
}"""


def evaluated(page: Any, expression: str) -> Any:
    """The value of a function without arguments. The browser is asked: Netron's page forbids playwright's `eval`."""
    session = page.context.new_cdp_session(page)
    answer = session.send(
        "Runtime.evaluate", {"expression": f"({expression})()", "awaitPromise": True, "returnByValue": True}
    )
    session.detach()
    return answer["result"].get("value")


ZOOMED = """() => {
  const app = window.onnxsmithView;
  app.fit();
  app.pane.zoomBy(%f / app.side.camera.zoom);
}"""
SECOND_FRAME = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame((now) => done(now))))"""


def onnx_file(model: Any, path: Path) -> None:
    """The nodes of a scene as an ONNX file, with the types of their values."""
    from onnx import TensorProto, helper, save

    names, nodes = model["values"]["name"], model["nodes"]
    made = [
        helper.make_node(
            model["ops"][nodes["op"][at]]["type"],
            [names[value] for value in nodes["inputs"][at]],
            [names[value] for value in nodes["outputs"][at]],
            name=nodes["name"][at],
        )
        for at in range(len(nodes["op"]))
    ]
    kind = model["values"]["kind"]
    typed = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 64, 56, 56]) for name in names]
    weights = [
        helper.make_tensor(names[at], TensorProto.FLOAT, [1], [0.0]) for at in range(len(names)) if kind[at] == 3
    ]
    graph = helper.make_graph(
        made,
        "flat",
        [typed[at] for at in range(len(names)) if kind[at] == 1],
        [typed[at] for at in range(len(names)) if kind[at] == 2],
        initializer=weights,
        value_info=[typed[at] for at in range(len(names)) if kind[at] == 0],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def megabytes(browser_pid: int) -> float:
    """Private memory of the renderers of a browser, in MB: the largest of them is the page."""
    found = [0.0]
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if b"--type=renderer" not in (process / "cmdline").read_bytes() or not _descends(
                int(process.name), browser_pid
            ):
                continue
            lines = (process / "smaps_rollup").read_text().splitlines()
            found.append(sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1000)
    return max(found)


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        pid = int((Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[1])
    return False


def frames(page: Any, move: Any) -> tuple[float, float]:
    """Frames a second during a movement, and the 95th percentile of the time between two, in milliseconds."""
    evaluated(page, COUNT)
    start = time.monotonic()
    step = 0
    while time.monotonic() - start < SECONDS:
        move(step)
        step += 1
    stamps = evaluated(page, "() => window.__stop()")
    gaps = [after - before for before, after in itertools.pairwise(stamps)]
    return 1000 * len(gaps) / sum(gaps), statistics.quantiles(gaps, n=20)[-1]


def movements(page: Any) -> dict[str, tuple[float, float]]:
    """Pans by dragging and zooms by the wheel, as it is first shown and after zooming out to the whole."""
    middle = (SIZE["width"] / 2, SIZE["height"] / 2)

    def drag(step: int) -> None:
        page.mouse.move(
            middle[0] + 120 * ((step // 12) % 2 * 2 - 1) * (step % 12) / 12, middle[1] - 150 + 25 * (step % 12)
        )

    def wheel(step: int) -> None:
        page.mouse.wheel(0, 60 if (step // 30) % 2 else -60)

    page.mouse.move(*middle)
    page.mouse.down()
    pan = frames(page, drag)
    page.mouse.up()
    page.mouse.move(*middle)
    return {"pan": pan, "zoom": frames(page, wheel)}


def ours(page: Any, scene: Any, folder: Path) -> float:
    from tests.viewer.browser.page import written

    path = written(folder, scene)
    page.goto(path.as_uri(), wait_until="commit")
    return _shown(page, "() => Boolean(window.onnxsmithView && window.onnxsmithView.panes[0].times.length)")


def _shown(page: Any, condition: str) -> float:
    """Seconds from the navigation to the frame after a condition became true."""
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE:
        with contextlib.suppress(Exception):
            if evaluated(page, condition):
                return float(evaluated(page, SECOND_FRAME)) / 1000
        time.sleep(0.02)
    return float("nan")


@contextlib.contextmanager
def netron_server(model: Path) -> Iterator[str]:
    import netron

    threading.excepthook = lambda *_: None
    address = netron.start(str(model), browse=False)
    yield f"http://{address[0]}:{address[1]}"
    netron.stop()


def netrons(page: Any, address: str) -> float:
    """Netron first asks about cookies: yes. While it lays out a large graph it offers to cancel: left alone."""
    page.goto(address, wait_until="commit")
    condition = """() => {
      const yes = document.querySelector('#message-button');
      const asked = document.querySelector('#message-text')?.textContent ?? '';
      if (yes && yes.offsetParent && asked.includes('cookies')) yes.click();
      return document.querySelectorAll('svg g.node').length > 100
        && document.body.className.includes('default');
    }"""
    return _shown(page, condition)


def measured(nodes: int) -> None:
    from playwright.sync_api import sync_playwright

    from tests.viewer.browser import scenes

    scene = scenes.flat(nodes)
    print(f"{nodes} nodes, window of {SIZE['width']} by {SIZE['height']}")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as running:
        folder = Path(name)
        onnx_file(scene["models"][0], folder / "flat.onnx")
        chromium = shutil.which("chromium")
        for tool in ("onnxsmith", "netron"):
            server = running.chromium.launch_persistent_context(
                str(folder / tool), executable_path=chromium, args=["--no-sandbox"], viewport=SIZE
            )
            pid = int(
                subprocess.run(
                    ["pgrep", "-f", "-o", f"user-data-dir={folder / tool}"], capture_output=True, text=True, check=True
                ).stdout.split()[0]
            )
            page = server.new_page()
            page.set_default_timeout(PATIENCE * 1000)
            if tool == "onnxsmith":
                report(tool, page, ours(page, scene, folder), pid, "() => window.onnxsmithView.fit()")
            else:
                with netron_server(folder / "flat.onnx") as address:
                    report(tool, page, netrons(page, address), pid, "")
            server.close()


def report(tool: str, page: Any, shown: float, pid: int, fit: str) -> None:
    if shown != shown:
        print(f"{tool}: nothing was shown in {PATIENCE:.0f} s; {megabytes(pid):.0f} MB")
        return
    time.sleep(2)
    print(f"{tool}: first picture {shown:.2f} s, {megabytes(pid):.0f} MB")
    for what, (rate, gap) in movements(page).items():
        print(f"  {what}: {rate:.0f} frames a second, 95 % of the frames within {gap:.0f} ms")
    if fit:
        for zoom in (0.02, 0.05, 0.12, 0.3):
            evaluated(page, ZOOMED % zoom)
            time.sleep(0.5)
            for what, (rate, gap) in movements(page).items():
                print(f"  {what} from {zoom:.0%}: {rate:.0f} frames a second, 95 % of the frames within {gap:.0f} ms")
    print(f"  afterwards {megabytes(pid):.0f} MB")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=20_000)
    measured(options.parse_args().nodes)
