"""A text of millions of characters in a model is shortened wherever it is shown, so that a report stays a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from onnxsmith.base.printable import DATA, LINE, VERBATIM, limited, paragraph
from onnxsmith.base.words import nearest
from onnxsmith.cli import application
from onnxsmith.deployment.checking.refused_nodes import shape_of
from tests import gallery

COUNT = 2_000_000
LONG = "A" * COUNT


def model(op: str = "Relu", dim: str = "n", domain: str = "", name: str = "node", rank: int = 2) -> onnx.ModelProto:
    shape = [dim, *[4] * (rank - 1)]
    x, y = (helper.make_tensor_value_info(one, TensorProto.FLOAT, shape) for one in "xy")
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], name=name, domain=domain)], "g", [x], [y])
    own = [helper.make_opsetid(domain, 1)] if domain else []
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), *own], ir_version=10)


def with_texts(**texts: str) -> onnx.ModelProto:
    made = model()
    for name, text in texts.items():
        setattr(made, name, text)
    return made


def with_metadata(key: str, value: str) -> onnx.ModelProto:
    made = model()
    made.metadata_props.add(key=key, value=value)
    return made


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "operator": lambda: model(op=LONG),
    "operator of many lines": lambda: model(op="A\n" * (COUNT // 2)),
    "domain": lambda: model(domain=LONG),
    "dimension": lambda: model(dim=LONG),
    "node": lambda: model(name=LONG),
    "doc string": lambda: with_texts(doc_string="word " * (COUNT // 5)),
    "doc string of many lines": lambda: with_texts(doc_string="word\n" * (COUNT // 5)),
    "producer": lambda: with_texts(producer_name=LONG),
    "metadata": lambda: with_metadata("key", LONG),
    "key of metadata": lambda: with_metadata(LONG, "value"),
    "rank": lambda: model(rank=10_000),
}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    with gallery.inside(tmp_path, {}):
        yield tmp_path


@pytest.mark.parametrize("field", MODELS)
def test_reports_stay_short(here: Path, field: str) -> None:
    onnx.save(MODELS[field](), "long.onnx")
    onnx.save(model(), "short.onnx")
    for words in (["inspect", "long.onnx"], ["diff", "short.onnx", "long.onnx"], ["view", "long.onnx", "-o", "v.html"]):
        text, status = gallery.called(application.main, words)
        assert len(text) < 30_000, words
        assert text.count("\n") <= (40 if status == 2 else 100), words
    assert status == 2 or Path("v.html").stat().st_size < 2_000_000


@pytest.mark.parametrize("verb", ["inspect long.onnx", "simplify long.onnx -o new.onnx", "check long.onnx"])
@pytest.mark.parametrize("field", ["operator", "operator of many lines", "domain"])
def test_no_operator_has_such_a_name(here: Path, verb: str, field: str) -> None:
    onnx.save(MODELS[field](), "long.onnx")
    text, status = gallery.called(application.main, verb.split())
    assert status == 2
    assert f"model/invalid: the name of an operator or of its domain has {COUNT:,} characters\n" in text


def test_a_page_and_json_shorten_too(here: Path) -> None:
    onnx.save(with_texts(producer_name=LONG), "long.onnx")
    text, status = gallery.called(application.main, ["inspect", "long.onnx", "--html", "page.html"])
    assert status == 0
    assert f"({COUNT:,} characters)" in text
    assert Path("page.html").stat().st_size < COUNT
    text, status = gallery.called(application.main, ["inspect", "long.onnx", "--json"])
    assert status == 0
    assert f"({COUNT:,} characters)" in json.dumps(json.loads(text))


def test_what_follows_a_long_name_is_shown() -> None:
    assert paragraph(f"the node {LONG} is not known") == f"the node {'A' * 200}… ({COUNT:,} characters) is not known"


def test_usual_texts_are_whole() -> None:
    usual = "\n".join(["a word " * 20] * 20)
    assert paragraph(usual) == limited(usual, LINE) == usual
    code = "\n".join(["line"] * VERBATIM)
    assert limited(code, VERBATIM) == limited(code, DATA) == code


def test_a_long_name_is_like_no_other() -> None:
    assert nearest(LONG, ["Relu", LONG + "A"]) is None
    assert nearest("Rleu", ["Relu", LONG]) == "Relu"


def test_the_shape_of_a_message() -> None:
    assert shape_of(f"{LONG} of node_1 at a.b: 3 not {LONG}") == f"{LONG} of * at * * not {LONG}"
