"""`view`: the file that is written, names that attack the page, models and reports that do not fit."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.written_files import View
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer import page_server
from onnxsmith.viewer.scene import Scene, figure, to_json
from onnxsmith.viewer.view import view
from tests.viewer.models import HEAD, chain, in_module
from tests.viewer.test_rooms import BRANCHES, FUNCTIONS

HOSTILE = "</script><img src=x onerror=alert(1)><!--<script>&amp;\u2028\"'`"


class Page(HTMLParser):
    """The elements of a page with their attributes, and the texts of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.tags[-1][0] if self.tags else "", data))


def scene_in(page: str) -> dict[str, Any]:
    """The scene in a page, as the page reads it."""
    found = re.search(r'<script type="application/json" id="scene">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def refused(*models: Any, **how: Any) -> str:
    with pytest.raises(OnnxsmithError) as caught:
        view(*models, **how)
    return caught.value.problem.id


def test_the_file(tmp_path: Path) -> None:
    save(chain(["Relu", "Abs"]), tmp_path / "m.onnx")
    result = onnxsmith.view(tmp_path / "m.onnx", output=tmp_path / "m.html")
    assert result.ok
    assert result.path == tmp_path / "m.html"
    assert (tmp_path / "m.html").read_text(encoding="utf-8") == result.page
    scene = scene_in(result.page)
    assert scene["format"] == 1
    assert scene["headline"] == "m.onnx: 3 nodes"
    (model,) = scene["models"]
    assert model["hash"] == hashlib.sha256((tmp_path / "m.onnx").read_bytes()).hexdigest()
    assert set(model["rooms"][0]["edges"]) == {"from", "to", "value", "bends"}
    part = result.report.part(View)
    assert (part.nodes, part.rooms, part.pairs) == ({"m.onnx": 3}, {"m.onnx": 1}, None)
    assert Report.from_json(result.report.to_json()) == result.report


def test_the_page_allows_its_own_script_and_style_only(tmp_path: Path) -> None:
    page = Page(view(chain(["Relu"])).page)
    (policy,) = [attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    assert set(rules) == {"script-src", "style-src"}
    texts = [text for tag, text in page.texts if tag in ("script", "style") and text.strip()]
    style, _, script = texts
    assert (style, script) == ("body > p {}", "start(1 < 2 && 'ä')"), "not escaped: they are no text of the document"
    for text, name in ((style, "style-src"), (script, "script-src")):
        assert rules[name] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert not any(name.startswith("on") or name in ("src", "href", "style") for _, a in page.tags for name in a)
    assert [attrs["id"] for _, attrs in page.tags if "id" in attrs] == ["app", "scene"]


def hostile() -> ir.Model:
    """A model in which everything that has a name has the same one."""
    model = chain(["Relu"])
    model.doc_string = model.graph.name = model.producer_name = HOSTILE
    model.metadata_props[HOSTILE] = HOSTILE
    relu, last = model.graph
    relu.name = HOSTILE
    relu.outputs[0].name = HOSTILE
    last.name = f"{HOSTILE}2"
    in_module(relu, HOSTILE)
    relu.metadata_props["pkg.torch.onnx.stack_trace"] = f'File "{HOSTILE}.py", line 3, in forward\n    {HOSTILE}'
    return model


def test_names_do_nothing_in_the_page(tmp_path: Path) -> None:
    save(hostile(), tmp_path / "m.onnx")
    plain = Page(view(chain(["Relu"])).page)
    page = Page(view(tmp_path / "m.onnx", output=tmp_path / "m.html").page)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert scene_in((tmp_path / "m.html").read_text(encoding="utf-8"))["models"][0]["nodes"]["name"][0] == HOSTILE


def test_names_do_nothing_in_a_notebook() -> None:
    result = view(hostile())
    tags = Page(result._repr_html_()).tags
    assert {tag for tag, _ in tags} == {tag for tag, _ in Page(view(chain(["Relu"]))._repr_html_()).tags}
    (frame,) = (attributes for tag, attributes in tags if tag == "iframe")
    assert frame["srcdoc"] == result.page
    assert "allow-same-origin" not in str(frame["sandbox"])
    assert "iframe" not in onnxsmith.diff(hostile(), hostile())._repr_html_()


@given(st.text())
def test_any_text_stays_in_the_scene(text: str) -> None:
    written = to_json(Scene(text, [text], []))
    assert not re.search(r"[<>&\u2028\u2029]|[^\x20-\x7e]", written)
    assert json.loads(written)["headline"] == text


def test_numbers_that_json_lacks() -> None:
    assert [figure(one) for one in (1.5, float("nan"), float("inf"), -float("inf"), 3)] == [
        1.5,
        "nan",
        "inf",
        "-inf",
        3,
    ]


def test_a_file_that_is_no_model_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"no model")
    output = tmp_path / "m.html"
    assert refused(tmp_path / "m.onnx", output=output).startswith("model/")
    assert refused(tmp_path / "none.onnx", output=output) == "model/not-found"
    assert not output.exists()


def test_files_that_are_kept(tmp_path: Path) -> None:
    save(chain(["Relu"]), tmp_path / "m.onnx")
    before = (tmp_path / "m.onnx").read_bytes()
    for option in ("output", "svg", "png"):
        assert refused(tmp_path / "m.onnx", **{option: tmp_path / "m.onnx"}) == "save/needed"
    (tmp_path / "note.txt").write_text("mine")
    assert refused(tmp_path / "m.onnx", output=tmp_path / "note.txt") == "save/needed"
    assert refused(tmp_path / "m.onnx", output=tmp_path / "none" / "m.html") == "save/no-folder"
    assert (tmp_path / "m.onnx").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "note.txt"]


def test_a_path_that_is_no_level(tmp_path: Path) -> None:
    model = chain([f"{op}@net.a" for op in ("Relu", "Abs", "Neg")] + ["Exp@net.b"])
    with pytest.raises(OnnxsmithError) as caught:
        view(model, svg=tmp_path / "x.svg", module="net.aa")
    assert caught.value.problem.id == "view/no-module"
    assert "net.a" in caught.value.problem.fix
    assert not (tmp_path / "x.svg").exists()
    assert refused(chain(["Relu"]), svg=tmp_path / "x.svg", module="a") == "view/no-module"


def test_constant_nodes_are_counted_apart() -> None:
    text = HEAD + "g (float[N] x) => (float[N] y) { c = Constant<value = float[1] {2}>() y = Mul(x, c) }"
    facts = dict(scene_in(view(from_text(text)).page)["models"][0]["facts"])
    assert (facts["nodes"], facts["Constant nodes"]) == ("1", "1, shown at the nodes that read them")
    assert "Constant nodes" not in dict(scene_in(view(chain(["Relu"])).page)["models"][0]["facts"])


def test_the_name_of_a_node_is_the_path_of_its_body(tmp_path: Path) -> None:
    branches = from_text(BRANCHES)
    with pytest.raises(OnnxsmithError) as caught:
        view(branches, svg=tmp_path / "x.svg", module="choice")
    assert caught.value.problem.id == "view/no-module"
    assert "--module choice/then_branch, --module choice/else_branch" in caught.value.problem.fix
    function = from_text(FUNCTIONS)
    next(iter(function.graph)).name = "first"
    view(function, svg=tmp_path / "y.svg", module="first")
    assert "Add" in (tmp_path / "y.svg").read_text(encoding="utf-8")


def test_the_given_model_is_not_changed() -> None:
    model = chain(["Relu", "Abs"])
    view(model)
    assert all(value.shape is None for node in list(model.graph)[:2] for value in node.outputs)


def test_the_same_page_twice(tmp_path: Path) -> None:
    save(chain(["Relu", "Abs", "Neg"] * 6), tmp_path / "m.onnx")
    assert view(tmp_path / "m.onnx").page == view(tmp_path / "m.onnx").page


def test_an_empty_model() -> None:
    result = view(from_text(HEAD + "g (float[N] x) => (float[N] x) { }"))
    assert result.report.notes[0] == "the model has no nodes"
    assert scene_in(result.page)["models"][0]["rooms"][0]["items"]["kind"] == [2, 3]


def test_missing_weights(tmp_path: Path) -> None:
    gone = ir.ExternalTensor(
        "gone.bin", 0, 256, ir.DataType.FLOAT, shape=ir.Shape([64]), name="w", base_dir=tmp_path
    )  # fmt: skip
    weight = ir.Value(name="w", shape=ir.Shape([64]), type=ir.TensorType(ir.DataType.FLOAT), const_value=gone)
    model = from_text(HEAD + "g (float[N,64] x) => (float[N,64] y) { y = Mul(x, x) }")
    model.graph.initializers["w"] = weight
    model.graph[0].replace_input_with(1, weight)
    result = view(model)
    assert "the values of 1 weight are missing" in result.report.notes
    (constant,) = scene_in(result.page)["models"][0]["constants"].values()
    assert constant["file"] == "missing: gone.bin"
    assert constant["figures"] is None


def test_many_nodes_in_one_level() -> None:
    """No structure at all: every node reads two random ones before it."""
    draw = np.random.default_rng(0)
    lines = ["v0 = Relu(x)"]
    ops = ["Add", "Mul", "Sub", "Div", "Max", "Min"]
    for at in range(1, 3000):
        one, other = draw.integers(max(0, at - 40), at, 2)
        lines.append(f"v{at} = {ops[draw.integers(6)]}(v{one}, v{other})")
    result = view(from_text(HEAD + f"g (float[N] x) => (float[N] v2999) {{ {chr(10).join(lines)} }}"))
    assert result.report.notes == ()
    assert result.report.part(View).nodes == {"the model": 3000}


def test_a_large_page_is_served() -> None:
    page = "<p>ä</p>"
    with page_server.server(page) as running:
        thread = Thread(target=running.serve_forever, daemon=True)
        thread.start()
        try:
            packed = urllib.request.Request(running.address, headers={"Accept-Encoding": "gzip, br"})
            with urllib.request.urlopen(packed) as answer:
                assert gzip.decompress(answer.read()).decode() == page
            with urllib.request.urlopen(running.address) as answer:
                assert (answer.read().decode(), answer.headers["Content-Encoding"]) == (page, None)
            with urllib.request.urlopen(urllib.request.Request(running.address, method="HEAD")) as answer:
                assert (answer.read(), answer.headers["Content-Length"]) == (b"", str(len(page.encode())))
            assert running.server_address[0] == "127.0.0.1"
            for address, host in ((running.address.rpartition("/")[0] + "/", None), (running.address, "evil.example")):
                request = urllib.request.Request(address, headers={"Host": host} if host else {})
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(request)
                assert caught.value.code == 404
                caught.value.close()
        finally:
            running.shutdown()
            thread.join()


def test_a_small_page_is_not_served() -> None:
    report = page_server.serve(view(chain(["Relu"])))
    assert report.notes[-1] == "not served: a page under 50 MB opens from its file"


def test_a_large_page_in_a_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxsmith.viewer.view.LARGE", 1000)
    report = view(chain(["Relu"]), output=tmp_path / "page.html").report
    assert report.notes[-1].endswith("opens slowly from a file: add --serve")
    assert not view(chain(["Relu"])).report.notes


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.cli.commands.inspect import View as Command

    monkeypatch.chdir(tmp_path)
    save(chain(["Relu"]), "m.onnx")
    assert Command("m.onnx").run().headline == "m.onnx: 2 nodes"
    assert Path("m.html").is_file()
    Command("m.onnx", svg="m.svg").run()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.html", "m.onnx", "m.svg"], "no page was asked for"


def test_the_same_scene_in_every_process(tmp_path: Path) -> None:
    model = chain([f"{op}:/layer.{at}" for at in range(4) for op in ("Relu", "Abs", "Neg", "Sin")])
    save(model, tmp_path / "m.onnx")
    code = (
        "import hashlib, sys; from onnxsmith.viewer.view import view; import onnxsmith.viewer.html_page as html; "
        "html.pieces = lambda: ('{{ scene }}', '', ''); "
        "print(hashlib.sha256(view(sys.argv[1]).page.encode()).hexdigest())"
    )
    paths = [str(Path(onnxsmith.__file__).parent.parent), *sys.path]
    found = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        words = [sys.executable, "-c", code, str(tmp_path / "m.onnx")]
        found.add(subprocess.run(words, env=environment, capture_output=True, check=True).stdout)
    assert len(found) == 1


def test_a_browser_that_leaves_during_the_transfer_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    server = page_server.server(os.urandom(16_000_000).hex())
    server.daemon_threads = False  # closing then waits for the transfer
    with server:
        Thread(target=server.serve_forever, daemon=True).start()
        with socket.create_connection(server.server_address) as browser:
            browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # the end is a reset
            browser.sendall(f"GET {server.path} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
            assert browser.recv(100).startswith(b"HTTP/1.0 200")
        server.shutdown()
    assert capsys.readouterr().err == ""
