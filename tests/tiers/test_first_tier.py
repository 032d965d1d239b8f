"""`make test` asks every room, every verb and every family of examples, and stays short."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from onnxsmith.base import rooms
from onnxsmith.cli.commands.base import Command
from tests.tiers import costs
from tests.tiers.choosing import LIMIT, SMOKE, smoke

TESTS = Path(__file__).parents[1]
ROOMS = sorted({path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")})
GALLERY = "tests/docs/test_gallery.py::test_an_example_prints_what_its_page_says"
EXAMPLES = sorted(path.name for path in (TESTS.parent / "examples").iterdir() if path.is_dir())


@cache
def functions() -> dict[str, str]:
    """The source of each test function of which a case is in the first tier, by its node id.

    Of a function whose listed rows are all dear, others may be cheap: it is left out, to be safe.
    """
    known, listed = costs.read(), smoke()
    prices: dict[str, list[float]] = {}
    for case, seconds in known.items():
        prices.setdefault(case.partition("[")[0], []).append(seconds)
    found = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                name = f"tests/{path.relative_to(TESTS).as_posix()}::{node.name}"
                is_exhaustive = any("whole" in ast.unparse(one) for one in node.decorator_list)
                is_cheap = min(prices.get(name, [0.0])) <= LIMIT
                if name in listed or (is_cheap and not is_exhaustive):
                    found[name] = ast.get_source_segment(text, node) or ""
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_a_case(room: str) -> None:
    folder = f"tests/{room}/" if room != "." else "tests/"
    assert [name for name in functions() if name.rpartition("/")[0] + "/" == folder]


def examples() -> list[str]:
    """The examples of which the first tier runs all commands."""
    known, listed = costs.read(), smoke()
    rows = {name: f"{GALLERY}[{name}]" for name in EXAMPLES}
    return [name for name, row in rows.items() if row in listed or known.get(row, 0.0) <= LIMIT]


@pytest.mark.parametrize("verb", sorted(rooms.classes("onnxsmith.cli.commands", Command)))
def test_every_verb_has_a_case(verb: str) -> None:
    verb = verb.replace("/", " ")
    called = re.compile(rf"""onnxsmith\.{verb.replace("-", "_")}\(|["']{verb}["' ]""")
    pages = [(TESTS.parent / "examples" / name / "README.md").read_text(encoding="utf-8") for name in examples()]
    assert [name for name, source in functions().items() if called.search(source)] or [
        page for page in pages if re.search(rf"^\$ onnxsmith {verb}\b", page, re.MULTILINE)
    ]


@pytest.mark.parametrize("family", sorted({name[0] for name in EXAMPLES}))
def test_every_family_of_examples_has_a_case(family: str) -> None:
    assert [name for name in examples() if name.startswith(family)]


def test_what_is_listed_exists_and_would_be_left_out_otherwise() -> None:
    known = costs.read()
    for line in smoke():
        path, _, name = line.partition("::")
        assert f"def {costs.function(name)}(" in (TESTS.parent / path).read_text(encoding="utf-8"), line
        prices = [seconds for case, seconds in known.items() if case == line or case.startswith(f"{line}[")]
        assert prices, f"{line} is cheap: strike it from {SMOKE.name}"
        assert min(prices) > LIMIT, f"{line} is cheap: strike it from {SMOKE.name}"
