"""What a notebook shows of results, reports, unfinished models and errors."""

from __future__ import annotations

import linecache
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Block, Report, Table, Text
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.cli.render import notebook
from onnxsmith.cli.render.notebook import to_html
from onnxsmith.graph.files.text import from_text
from tests.notebooks.cards import FIX, card, rows

HOSTILE = "</style></details><img src=x onerror=alert(1)>\u202e\x1b&amp;\"'"
MODEL = '<ir_version: 10, opset_import: ["": 21]> g (float[n] x) => (float[n] y) { [gate] y = Sigmoid(x) }'


class Page(HTMLParser):
    """The elements of a page, and its texts outside of the style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_card_says_the_verdict_first_then_what_is_wrong(verdict: Verdict) -> None:
    text = Page(to_html(card(verdict))).text
    places = [
        text.index(one)
        for one in (
            f"compare {verdict.value}",
            "DIFFERENT on 7",
            "verify/different",
            FIX,
            "one size",
            "Layers",
            "view(",
        )
    ]
    assert places == sorted(places)


def test_parts_that_matter_are_unfolded() -> None:
    folded = [("open" in attributes) for tag, attributes in Page(to_html(card())).tags if tag == "details"]
    assert folded == [True, False]


def test_a_card_has_no_script_and_asks_for_no_address() -> None:
    tags = Page(to_html(card())).tags
    assert not {tag for tag, _ in tags} & {"script", "link", "svg", "iframe"}
    assert not any(name.startswith("on") or name == "href" for _, attributes in tags for name in attributes)
    assert all(str(one["src"]).startswith("data:") for tag, one in tags if tag == "img")


def test_every_rule_of_the_style_is_about_cards() -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", to_html(card()), re.DOTALL)
    flat = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    while "}" in (inner := re.sub(r"\{[^{}]*\}", ";", flat)):
        flat = inner
    selectors = [one for rule in inner.split(";") for one in rule.split(",") if one.strip()]
    assert len(selectors) > 5
    assert all(".onnxsmith-card" in one for one in selectors)


def test_names_from_strangers_do_nothing() -> None:
    problems = (Problem(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE),)
    blocks: tuple[Block, ...] = (Table((HOSTILE,), ((HOSTILE,),)), Text(HOSTILE), Text(HOSTILE, verbatim=True))
    hostile = card(title=HOSTILE, headline=HOSTILE, problems=problems, notes=(HOSTILE,), parts=((HOSTILE, blocks),))
    plain = replace(
        hostile,
        title="a",
        headline="a",
        problems=(Problem("a", "a", "a", "a", "a"),),
        notes=("a",),
        parts=(("a", (Table(("a",), (("a",),)), Text("a"), Text("a", verbatim=True))),),
    )
    assert Page(to_html(hostile)).tags == Page(to_html(plain)).tags
    assert "\u202e" not in to_html(hostile)
    assert "\x1b" not in to_html(hostile)


# Sizes


def test_a_long_table_shows_the_worst_rows_and_counts_the_others() -> None:
    table = replace(rows(1000), worst_first=tuple(reversed(range(1000))))
    text = Page(to_html(card(parts=(("Layers", (table,)),)))).text
    assert "n999" in text
    assert "n899" not in text
    assert "900 more rows." in text


@pytest.mark.parametrize(
    "changes",
    [
        {"parts": tuple((f"part {at}", (rows(5000),)) for at in range(30))},
        {"parts": tuple((f"part {at}", (rows(3),)) for at in range(5000))},
        {"parts": (("Wide", (Table(tuple("abc" * 20000), (tuple("def" * 20000),)),)),)},
        {"problems": tuple(Problem("a/b", "w" * 9000, fix="f" * 9000) for _ in range(1000))},
        {"title": "t" * 900_000, "headline": "h" * 900_000, "notes": ("n" * 900_000,) * 9},
        {"parts": (("Text", (Text("t" * 900_000, verbatim=True),)),)},
    ],
)
def test_a_card_is_small_whatever_is_in_it(changes: dict[str, object]) -> None:
    written = to_html(card(**changes))
    assert len(written.encode()) <= notebook.LARGEST
    assert "verify/different" in written or "a/b" in written
    assert " more " in written or "…" in written


def test_a_page_that_jupyter_would_refuse_is_not_shown() -> None:
    fits = "x" * (notebook.LARGEST_PAGE - 1)
    assert fits in to_html(card(page=fits))
    written = to_html(card(page=fits + "xx"))
    assert len(written) < notebook.LARGEST
    assert "The page has 2.5 MB" in written


# What has a card


def test_results_and_reports_have_a_line_for_the_terminal() -> None:
    model = from_text(MODEL)
    result = onnxsmith.simplify(model)
    assert repr(result).startswith("<Result of simplify, done: ")
    assert len(repr(result)) < 200
    assert repr(onnxsmith.inspect(model)).startswith("<Report of inspect, done: ")
    failed = Report("check", Verdict.FAILED, problems=(Problem("a/b", "nothing runs"),))
    assert repr(Result(failed)) == "<Result of check, failed: nothing runs>"
    assert repr(Result(Report("check", Verdict.DONE))) == "<Result of check, done>"


def test_a_result_with_a_model_says_how_to_view_it() -> None:
    model = from_text(MODEL)
    result = onnxsmith.simplify(model)
    assert "onnxsmith.view(result.model)" in result._repr_html_()
    assert "srcdoc" in onnxsmith.view(result.model)._repr_html_()
    assert "onnxsmith.view" not in onnxsmith.compare(model, model)._repr_html_()
    assert "<td>float[n]</td>" in onnxsmith.inspect(model)._repr_html_()


def test_unfinished_models_have_cards_of_the_same_kind() -> None:
    with onnxsmith.edit(from_text(MODEL)) as edit:
        edited = Page(edit._repr_html_()).text
        edit.rename("x", "image")
    assert "1 node Nodes node operator reads gives gate Sigmoid <tensor x: float[n]>" in edited
    with onnxsmith.build(name="net") as g:
        g.output("y", g.Relu(g.input("x", "float32", [2])))
        built = Page(g._repr_html_()).text
    assert built.startswith("model in construction: net 1 node")
    assert "Relu x" in built


# Errors


def shown(error: OnnxsmithError) -> str:
    return "\n".join(error._render_traceback_())


def test_an_error_shows_its_problem_and_the_line_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.simplify(tmp_path / "missing.onnx")
    lines = shown(caught.value).splitlines()
    assert "model/not-found: there is no such file" in lines[0]
    assert [line.split(":")[0].strip() for line in lines[1:3]] == ["where", "fix"]
    assert re.fullmatch(r'  in .*test_card\.py:\d+: onnxsmith\.simplify\(tmp_path / "missing\.onnx"\)', lines[3])
    assert "traceback.print_last()" in lines[4]
    assert len(lines) == 5


def test_the_line_of_a_cell_has_its_code() -> None:
    name, source = "/tmp/ipykernel_1/2.py", "import onnxsmith\nonnxsmith.inspect('missing.onnx')\n"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    with pytest.raises(OnnxsmithError) as caught:
        exec(compile(source, name, "exec"), {})
    text = shown(caught.value)
    del linecache.cache[name]
    assert "  in line 2 of the cell: onnxsmith.inspect('missing.onnx')\n" in text


def test_an_error_without_a_traceback_is_shown() -> None:
    assert "a/b: it is so" in shown(problem("a/b", "it is so"))
