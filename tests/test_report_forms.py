"""`--report FILE`: each form says the same as the report, whatever the names in it are."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Block, Chart, Facts, Intervals, Part, Plot, Report, Series, Table, Text, Tone
from onnxsmith.base.report.parts.baselines import BaselineChange, BaselineModel, Baselines
from onnxsmith.base.report.parts.guarded_files import FileFindings, GuardedFiles
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application
from onnxsmith.cli.render.forms.base import Form, form_of
from onnxsmith.cli.render.report_files import Pages, write
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests import gallery

MODEL = '<ir_version: 10, opset_import: ["": 20]> g (float[N] x) => (float[N] y) { y = Neg(x) }'
STRANGE = (
    "<script>alert(1)</script>", "a|b", "a\\|b", "[x](http://evil.example)", "![x](http://evil.example/p.png)",
    "@somebody", "#12", "GH-12", "https://evil.example/x", "www.evil.example", "`code`", "``", "*bold*", "_x_",
    "__init__", "~~gone~~", ":tada:", "$x$", "# head", "- item", "1. item", "> quote", "</details>", "<!-- -->",
    "---", "===", "a\nb", "| c |", "&lt;b&gt;", "&amp;", "\x1b[31mred", "\u202eevil", "a\udc80b", "", "x\ty",
    "```\nfence", "`` ` ``", "user@example.com", "0123abcdef0", "<b", "\\", "a*b*c", "!12", "%1", "~bug", "&#42;x&#42;",
    "+ item", "![]", "[ref]: http://evil.example", "layers.0/attn·q",
)  # fmt: skip


@dataclass(frozen=True)
class Shown(Part):
    """A part of the blocks that a test gives."""

    title = "Shown"

    given: tuple[Block, ...]

    def blocks(self) -> Iterator[Block]:
        return iter(self.given)


def written(report: Report, folder: Path, ending: str) -> str:
    path = folder / f"r.{ending}"
    assert not [one for one in write(report, Pages(reports=(str(path),))).problems if one.id == "report/not-written"]
    return path.read_text(encoding="utf-8")


def of_blocks(*blocks: Block, **more: Any) -> Report:
    return Report("inspect", Verdict.DONE, (Shown(blocks),), **more)


BAD = Report(
    "baseline",
    Verdict.DIFFERENT,
    (
        Baselines(
            "models/baseline.json",
            (
                BaselineModel("a.onnx", "worse", 1, 2, 3),
                BaselineModel("sub/a.onnx", "as recorded", 1, 2, 3, 0.1),
                BaselineModel("b.onnx", "missing", 1, 2, 3),
                BaselineModel("c.onnx", "cannot tell", 1, 2, 3, 0.1),
                BaselineModel("d.onnx", "failed", 1, 2, 3),
            ),
            (
                BaselineChange("a.onnx", "weights", "worse", "off by 1"),
                BaselineChange("a.onnx", "size", "worse", "grew by 9%"),
                BaselineChange("a.onnx", "nodes", "better", "fewer"),
                BaselineChange("b.onnx", "missing", "worse", "the file of the model is gone"),
                BaselineChange("c.onnx", "slower", "cannot tell", "another machine"),
            ),
        ),
    ),
    (
        Problem(
            "gate/worse",
            "a.onnx is worse than its baseline: weights, size",
            where="models/baseline.json",
            why="weights: off by 1; size: grew by 9%",
        ),
        Problem("gate/model-missing", "the model b.onnx is gone", where="models/baseline.json", fix="bring it back"),
        Problem("gate/not-compared", "not all that is recorded of c.onnx could be compared"),
        Problem("model/empty", "the file is empty", where="models/d.onnx, tensor 'w'", why="[see](0) {0}"),
    ),
    headline="3 of 5 models WORSE",
    notes=("times were not measured",),
)


def test_every_form_is_written_and_a_second_run_replaces_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(from_text(MODEL), tmp_path / "m.onnx")
    names = ["r.html", "r.json", "r.md", "r.sarif", "r.xml"]
    words = ["inspect", "m.onnx", *(word for name in names for word in ("--report", name))]
    for _ in range(2):
        assert gallery.called(application.main, words)[1] == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.onnx", *names]
    report = Report.from_json(Path("r.json").read_text(encoding="utf-8"))
    assert report.headline in Path("r.html").read_text(encoding="utf-8")
    assert ElementTree.parse("r.xml").getroot()[0].attrib["name"] == "onnxsmith inspect"


def test_an_unknown_ending_is_refused_before_the_command_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(from_text(MODEL), tmp_path / "m.onnx")
    words = ["simplify", "m.onnx", "-o", "s.onnx", "--report", "r.md", "--report", "r.txt"]
    text, status = gallery.called(application.main, words)
    assert status == 2
    assert "report/unknown-form" in text
    assert ".html, .json, .md, .sarif, .xml" in text
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("ending", ["html", "json", "md", "sarif", "xml"])
def test_another_file_is_not_overwritten(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"r.{ending}"
    form: Form = form_of(str(path))
    written(BAD, tmp_path, ending)
    form.refuse_loss(str(path))
    for content in ("notes", '{"version": "2.1.0"}', '<?xml version="1.0"?><testsuites name="pytest tests">', "# Read"):
        path.write_text(content)
        with pytest.raises(OnnxsmithError) as raised:
            form.refuse_loss(str(path))
        assert raised.value.problem.id == "save/needed"


def test_all_files_are_written_or_none(tmp_path: Path) -> None:
    chart = Chart("c", ("a", "b"), (("one", (1.0, 2.0)),))
    (tmp_path / "bad.xml").mkdir()
    paths = (str(tmp_path / "r.md"), str(tmp_path / "bad.xml"))
    report = write(of_blocks(chart), Pages(reports=paths))
    assert [one.where for one in report.problems] == [str(tmp_path / "bad.xml")]
    assert [file.name for file in tmp_path.iterdir()] == ["bad.xml"]


def rendered(text: str) -> list[Any]:
    """The tokens of a Markdown text, those of lines beside those of blocks."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return [inner for token in parser.parse(text) for inner in (token, *(token.children or []))]


def seen(text: str) -> str:
    """What a reader sees of a Markdown text."""
    return unescape(re.sub(r"<[^>]*>", "", MarkdownIt("commonmark", {"html": True}).enable("table").render(text)))


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_name_is_shown_in_markdown_and_means_nothing(tmp_path: Path, name: str) -> None:
    report = Report(
        "inspect",
        Verdict.DIFFERENT,
        (
            Shown((Text(name, Tone.BAD), Table((name, "x"), ((name, "end"),)), Facts(((name, name),)))),
            Shown((Text(name), Text(name, verbatim=True))),
        ),
        (Problem("a/b", name, where=name, why=name, fix=name),),
        (name,),
        name,
    )
    text = written(report, tmp_path, "md")
    tokens = rendered(text)
    kinds = {one.type for one in tokens}
    assert not kinds & {"link_open", "image", "em_open", "s_open", "blockquote_open", "ordered_list_open", "hr"}
    html = {one.content.strip() for one in tokens if one.type in ("html_inline", "html_block")}
    assert {re.sub(r">Shown<|>Notes<", "><", one) for one in html} <= {
        "<code>", "</code>", "</details>", "<details><summary></summary>", "<!-- onnxsmith report -->",
        "<!-- onnxsmith report -->\n### onnxsmith inspect: DIFFERENT",
    }  # fmt: skip
    assert len([one for one in tokens if one.type == "tr_open"]) == 4
    assert len([one for one in tokens if one.type == "td_open"]) == 4
    words = seen(text).split()
    for word in name.replace("`", " ").split():
        assert word.encode("unicode_escape").decode() in " ".join(words).encode("unicode_escape").decode() or not (
            word.isprintable()
        )
    text = re.sub(r"&#\d+;", "", text)
    bare = re.sub(r"<code>.*?</code>|```.*?```|^`{3,}.*?^`{3,}", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"@\w|#\d|GH-\d|https?:|www\.|:tada:|\$|~|[\x1b\u202e]", bare)


def test_reports_in_markdown_can_be_joined(tmp_path: Path) -> None:
    """As `cat reports/*.md` does for the summary of a job."""
    folded = Report("inspect", Verdict.DONE, (Shown((Text("one"),)), Shown((Text("two"),))), (), ("a note",), "right")
    texts = [written(one, tmp_path, "md") for one in (folded, BAD, Report("x", Verdict.DONE), folded)]
    tokens = MarkdownIt("commonmark", {"html": True}).parse("".join(texts))
    titles = [tokens[at + 1].content for at, one in enumerate(tokens) if one.type == "heading_open" and one.tag == "h3"]
    assert [one.partition(":")[0] for one in titles] == [
        "onnxsmith inspect", f"onnxsmith {BAD.command}", "onnxsmith x", "onnxsmith inspect",
    ]  # fmt: skip


def test_a_long_report_fits_into_a_comment_and_counts_the_rest(tmp_path: Path) -> None:
    rows = tuple((f"tensor_{number}" * 20, "x" * 500) for number in range(1000))
    part = Shown((Table(("name", "what"), rows, is_key=True), *(Text(f"sentence {n}") for n in range(100))))
    problems = tuple(Problem("a/b", f"problem {n}", why="w_" * 3000, fix="f_" * 3000) for n in range(300))
    report = Report("x", Verdict.FAILED, (part,) * 30, problems, tuple("note" for _ in range(500)))
    text = written(report, tmp_path, "md")
    assert 10_000 < len(text) <= 65_536
    assert "more rows" in text
    assert "more problems" in text
    assert "problem 0" in text
    many = Report("x", Verdict.FAILED, tuple(Shown((Table(("a",) * 9, (("@" * 90,) * 9,)),)) for _ in range(200)))
    text = written(many, tmp_path, "md")
    assert len(text) <= 65_536
    assert re.search(r"\d+ more sections", text)


def test_worst_rows_come_first_and_the_rest_is_counted(tmp_path: Path) -> None:
    rows = tuple((f"row{number}",) for number in range(30))
    text = written(of_blocks(Table(("name",), rows, worst_first=tuple(range(29, -1, -1)))), tmp_path, "md")
    assert "row29" in text
    assert "row0 " not in text
    assert "10 more rows" in text


def test_a_fix_of_several_lines_is_a_block(tmp_path: Path) -> None:
    report = Report("x", Verdict.FAILED, (), (Problem("a/b", "what", fix="write this:\n    a = 1\n    ```"),))
    (fence,) = [one for one in rendered(written(report, tmp_path, "md")) if one.type == "fence"]
    assert fence.content == "write this:\n    a = 1\n    ```\n"


PICTURES = (
    Chart("errors", ("a", "b"), (("<b>", (1e-3, None)), ("two", (1.0, 5.0)))),
    Plot("sizes", "MB", "ms", (Series("one\x00", (1.0, 2.0), (3.0, 4.0), (2.0, 3.0), (4.0, 5.0)),)),
    Intervals("ratios", (("a & b", 0.9, 1.0, 1.1),), 1.0),
)


def test_charts_become_pictures_beside_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "a (b)"
    folder.mkdir()
    text = written(of_blocks(*PICTURES), folder, "md")
    assert re.findall(r"!\[(\w+)\]\(([^)]*)\)", text) == [
        ("errors", "r-1.svg"),
        ("sizes", "r-2.svg"),
        ("ratios", "r-3.svg"),
    ]
    for number, name in enumerate(("<b>", "one\\x00", "a & b"), 1):
        root = ElementTree.parse(folder / f"r-{number}.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert name in "".join(root.itertext())
        assert len(list(root.iter())) > 10
    written(of_blocks(*PICTURES[:1]), folder, "md")
    form_of("r.md").refuse_loss(str(folder / "r.md"))
    (folder / "r-1.svg").write_text("<svg><!-- drawn by hand --></svg>")
    with pytest.raises(OnnxsmithError) as raised:
        form_of("r.md").refuse_loss(str(folder / "r.md"))
    assert raised.value.problem.id == "save/needed"


def test_each_form_names_the_pictures(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"r.{ending}") for ending in ("json", "md", "html")]
    told = write(of_blocks(*PICTURES), Pages(html=paths[2], reports=tuple(paths[:2])))
    names = [str(tmp_path / f"r-{number}.svg") for number in (1, 2, 3)]
    assert told.notes == (f"pictures of --report: {', '.join(names)}",)
    assert json.loads(Path(paths[0]).read_text())["notes"] == list(told.notes)
    assert all("pictures of --report" in Path(path).read_text() for path in paths[1:])
    assert write(of_blocks(PICTURES[0]), Pages(html=paths[2])).notes == ()  # a page holds its charts


def sarif(report: Report, folder: Path) -> dict[str, Any]:
    """The only run of a SARIF file, after a check of what the schema of SARIF 2.1.0 and GitHub demand."""
    log = json.loads(written(report, folder, "sarif"))
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert set(run) == {"tool", "automationDetails", "invocations", "results"}
    assert run["automationDetails"]["id"] == f"onnxsmith/{report.command}/"
    driver = run["tool"]["driver"]
    assert set(driver) == {"name", "version", "rules"}
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        assert set(rule) == {"id", "shortDescription", "fullDescription", "help"}
        assert all(rule[name]["text"] for name in ("shortDescription", "fullDescription", "help"))
    (invocation,) = run["invocations"]
    assert type(invocation["executionSuccessful"]) is bool
    assert invocation["exitCode"] == report.verdict.exit_code
    for result in run["results"]:
        assert set(result) <= {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"}
        assert result["level"] in ("none", "note", "warning", "error")
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
        assert all(isinstance(text, str) for text in result["partialFingerprints"].values())
        for location in result["locations"]:
            assert set(location) <= {"physicalLocation", "logicalLocations"}
            uri = location["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"[\w./%~-]+", uri)
            assert not uri.startswith("/")
            assert location["physicalLocation"]["region"]["startLine"] >= 1
    return run  # type: ignore[no-any-return]


def test_sarif_has_a_result_for_each_cause_and_each_problem_without_causes(tmp_path: Path) -> None:
    run = sarif(BAD, tmp_path)
    told = [
        (one["ruleId"], one["level"], one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        for one in run["results"]
    ]
    assert told == [
        ("gate/worse", "error", "models/a.onnx"),
        ("gate/worse", "error", "models/a.onnx"),
        ("gate/model-missing", "error", "models/b.onnx"),
        ("gate/not-compared", "warning", "models/c.onnx"),
        ("model/empty", "error", "models/d.onnx"),
    ]
    texts = [one["message"]["text"] for one in run["results"]]
    assert texts[:3] == [
        "a.onnx: weights: off by 1\n  where: models/baseline.json",
        "a.onnx: size: grew by 9%\n  where: models/baseline.json",
        "b.onnx: the file of the model is gone\n  where: models/baseline.json\n  fix: bring it back",
    ]
    assert "\\[see](0)" in texts[4]
    assert run["results"][4]["locations"][0]["logicalLocations"] == [{"name": "w", "kind": "tensor"}]
    marks = [json.dumps(one["partialFingerprints"]) for one in run["results"]]
    assert len(set(marks)) == len(marks)
    assert [json.dumps(one["partialFingerprints"]) for one in sarif(BAD, tmp_path)["results"]] == marks
    page = run["tool"]["driver"]["rules"][0]
    assert page["shortDescription"]["text"] == "a model is worse than its baseline"
    assert "## What helps" in page["help"]["markdown"]


def test_markdown_says_a_cause_once(tmp_path: Path) -> None:
    text = seen(written(BAD, tmp_path, "md"))
    assert [text.count(one.what) for one in BAD.part(Baselines).changes] == [1] * 5
    other = dataclasses.replace(BAD.problems[0], why="weights: off by 1; and the moon is full")
    text = seen(written(dataclasses.replace(BAD, problems=(other,)), tmp_path, "md"))
    assert "the moon is full" in text, "a reason that says more stays"


def test_a_node_is_named_by_its_operator(tmp_path: Path) -> None:
    report = Report(
        "compare", Verdict.DIFFERENT, problems=(Problem("compare/first-error", "x", where="MatMul node_a"),)
    )
    report = dataclasses.replace(report, parts=(GuardedFiles((FileFindings("m.onnx", "model", 1),)),))
    (result,) = sarif(report, tmp_path)["results"]
    assert result["locations"][0]["logicalLocations"] == [{"name": "node_a", "kind": "node"}]


def test_sarif_of_a_report_without_problems(tmp_path: Path) -> None:
    run = sarif(Report("inspect", Verdict.DONE), tmp_path)
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"]


def test_sarif_of_a_doubt_and_of_a_stranger(tmp_path: Path) -> None:
    problems = (Problem("other/kind", "a doubt", where="no such file\x00"),)
    run = sarif(Report("inspect", Verdict.DONE, (GuardedFiles((FileFindings("ä b.onnx", "model", 1),)),), problems),
                tmp_path)  # fmt: skip
    (result,) = run["results"]
    assert result["level"] == "note"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "%C3%A4%20b.onnx"


def junit(report: Report, folder: Path) -> dict[tuple[str, str], ElementTree.Element]:
    """The test cases of a JUnit file by their class and name. Its counts are those of the cases."""
    root = ElementTree.fromstring(written(report, folder, "xml").encode())
    (suite,) = root
    cases = {(case.attrib["classname"], case.attrib["name"]): case for case in suite.iter("testcase")}
    for element in (root, suite):
        assert int(element.attrib["tests"]) == len(list(suite.iter("testcase"))) == len(cases)
        for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(element.attrib[name]) == len(list(suite.iter(kind)))
    return cases


def test_junit_has_a_case_for_each_model_and_question(tmp_path: Path) -> None:
    cases = junit(BAD, tmp_path)
    told = {key: [(one.tag, one.attrib.get("type", "")) for one in case] for key, case in cases.items()}
    questions = ("interface", "numbers", "targets", "time", "memory", "size", "nodes")
    assert {name for model, name in told if model == "a.onnx"} == set(questions)
    assert told["a.onnx", "numbers"] == told["a.onnx", "size"] == [("failure", "different")]
    assert told["a.onnx", "nodes"] == told["a.onnx", "interface"] == []
    assert told["a.onnx", "time"] == told["a.onnx", "targets"] == [("skipped", "")]
    assert not any(told["sub/a.onnx", name] for name in questions if name != "targets")
    assert told["b.onnx", "model"] == [("failure", "different")]
    assert told["c.onnx", "time"] == [("failure", "cannot-tell")]
    assert told["d.onnx", "model"] == [("error", "failed")]
    assert len(told) == 3 * len(questions) + 2
    assert cases["a.onnx", "size"][0].text == (
        "size: grew by 9%\ngate/worse: a.onnx is worse than its baseline: weights, size\n  where: models/baseline.json"
    )
    assert str(BAD.problems[1]) in (cases["b.onnx", "model"][0].text or "")
    assert str(BAD.problems[3]) in (cases["d.onnx", "model"][0].text or "")


@pytest.mark.parametrize(
    ("verdict", "tag", "kind"),
    [
        (Verdict.DIFFERENT, "failure", "different"),
        (Verdict.CANNOT_TELL, "failure", "cannot-tell"),
        (Verdict.FAILED, "error", "failed"),
        (Verdict.DONE, "", ""),
    ],
)
def test_junit_of_a_command_without_cases(tmp_path: Path, verdict: Verdict, tag: str, kind: str) -> None:
    problem = Problem("a/b", "it is \x1b[31mred", fix="look & see")
    cases = junit(Report("compare", verdict, problems=(problem,), headline="h"), tmp_path)
    ((_, case),) = cases.items()
    assert [(one.tag, one.attrib["type"]) for one in case] == ([(tag, kind)] if tag else [])
    if tag:
        assert case[0].text == str(problem).replace("\x1b", "\\x1b")


def test_junit_never_passes_where_the_report_does_not(tmp_path: Path) -> None:
    """A problem of no case, and a verdict that no case explains, are cases of the command."""
    part = GuardedFiles((FileFindings("m.onnx", "model", 1),))
    problem = Problem("run/disk-full", "the disk is full")
    assert junit(Report("guard", Verdict.FAILED, (part,), (problem,)), tmp_path)["onnxsmith guard", "guard"][0].tag == (
        "error"
    )
    assert junit(Report("guard", Verdict.DIFFERENT, (part,)), tmp_path)["onnxsmith guard", "guard"][0].tag == "failure"


@pytest.mark.parametrize("name", [name for name in STRANGE if name])
def test_a_strange_name_is_valid_in_xml_and_sarif(tmp_path: Path, name: str) -> None:
    part = GuardedFiles((FileFindings(name, "model", 1, ("guard/pickled",)),))
    problem = Problem("guard/pickled", name, where=name)
    report = Report("guard", Verdict.DIFFERENT, (part,), (problem,), (name,), name)
    assert len(junit(report, tmp_path)) == 1
    (result,) = sarif(report, tmp_path)["results"]
    assert result["ruleId"] == "guard/pickled"
