"""Each example does what its page says, without a network, and prints it; the map leads to each of them."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import documents, gallery, offline

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_dir())
FROM_A_SHELL = {"40_build"}
"""Each of its commands is a process, as a reader starts it. The others run in processes that have torch already."""
PAGES = {name: ROOT / "examples" / name / "README.md" for name in EXAMPLES}


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder with a short name: reports show paths of files, and break lines behind 160 characters."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.torch
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_its_page_says(name: str, short_path: Path) -> None:
    without = shutil.ignore_patterns("__pycache__", "*.onnx", "*.onnx.data")
    folder = Path(shutil.copytree(ROOT / "examples" / name, short_path / name, ignore=without))
    variables = documents.environment(short_path / "bin", ROOT / "src")
    run = gallery.in_bash if name in FROM_A_SHELL else gallery.printed
    done = 0
    with offline.no_network(), gallery.inside(folder, variables):
        for step in documents.steps(PAGES[name].read_text(encoding="utf-8")):
            where = f"{name}, line {step.line}"
            if step.kind == "file":
                assert step.text in Path(step.path).read_text(encoding="utf-8"), f"{where}: not in {step.path}"
                continue
            assert step.kind == "command", f"{where}: give the program a name, so that it can be run"
            printed, status = run(step.text, variables)
            assert status == 0, f"{where}: {step.text}\n{printed}"
            wrong = documents.differs(step.shown, printed)
            assert not wrong, f"{where}: not printed there: {wrong}\n{printed}"
            done += 1
    assert done, f"{name} tells nobody to do anything"


def test_the_map_leads_to_every_example_once() -> None:
    found = re.findall(r"\]\((\w+)/README\.md\)", (ROOT / "examples" / "README.md").read_text(encoding="utf-8"))
    assert sorted(set(found)) == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_begins_with_its_purpose(name: str) -> None:
    assert re.fullmatch(r"\d\d_[a-z0-9_]+", name)
    assert re.match(r"# [A-Z`].*[^.]\n\n[A-Z`]", PAGES[name].read_text(encoding="utf-8"))


# The test's own parts


@pytest.mark.parametrize(
    ("shown", "printed", "wrong"),
    [
        (["a", "b"], "a\n\nb\n", ""),
        (["a"], "a\nb\n", "nothing after this, but there is: b"),
        (["b"], "a\nb\n", "b"),
        (["b", "a"], "a\nb\n", "b"),
        (["…", "b"], "a\nb\n", ""),
        (["a", "…"], "a\nb\nc\n", ""),
        (["…", "b", "…", "b"], "a\nb\na\nb\n", ""),
        (["…", "b", "…", "b"], "a\nb\n", "b"),
        (["a", "…", "c"], "a\nc\n", ""),
        ([], "a\n", "nothing after this, but there is: a"),
        ([], "\n", ""),
        (["12 nodes"], "13 nodes\n", "12 nodes"),
        (["in … s"], "in 1.25 s\n", ""),
    ],
)
def test_lines_are_held_to_their_places(shown: list[str], printed: str, wrong: str) -> None:
    assert documents.differs(shown, printed) == wrong


def test_a_command_that_fails_shows_its_status(tmp_path: Path) -> None:
    variables = documents.environment(tmp_path / "bin", ROOT / "src")
    with gallery.inside(tmp_path, variables):
        text, status = gallery.printed("onnxsmith inspect none.onnx" + gallery.STATUS, variables)
        assert status == 0
        assert (
            documents.differs(["model/not-found: …", "…", "exit status: 2"], text.replace("ERROR ", "")) == "" or text
        )
        assert gallery.printed("onnxsmith inspect none.onnx", variables)[1] == 2
        assert gallery.printed("echo one | cat; exit 3", variables) == ("one\n", 3)
        Path("hello.py").write_text("import sys\nprint(sys.argv[1])\n", encoding="utf-8")
        assert gallery.printed("python hello.py 'a; b'", variables) == ("a; b\n", 0)


def test_a_program_that_defines_operators_has_a_process_of_its_own(tmp_path: Path) -> None:
    variables = {**documents.environment(tmp_path / "bin", ROOT / "src"), "HERE": "one"}
    text = "import os, sys  # torch.library\nprint(os.environ['HERE'], os.getpid())\nsys.exit(int(sys.argv[1]))\n"
    with gallery.inside(tmp_path, variables):
        Path("hello.py").write_text(text, encoding="utf-8")
        first, status = gallery.printed("python hello.py 3", variables)
        second, shown = gallery.printed("python hello.py 4" + gallery.STATUS, {**variables, "HERE": "two"})
        failed, code = gallery.printed("python hello.py none", variables)
    assert (first.split()[0], status) == ("one", 3)
    assert (second.split()[0], second.splitlines()[-1], shown) == ("two", "exit status: 4", 0)
    assert ("ValueError: invalid literal for int() with base 10: 'none'" in failed, code) == (True, 1)
    assert len({str(os.getpid()), first.split()[1], second.split()[1], failed.split()[-1]}) == 4
