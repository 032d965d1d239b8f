"""docs/profiles.md: its example is a profile, its tables name every key and every rule."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.targets.profiles.node_acceptance import foresee
from onnxsmith.targets.profiles.profile_format import Operators, Profile
from onnxsmith.targets.profiles.profile_reader import built_in, named, parsed
from onnxsmith.targets.profiles.rules.base import kinds

PAGE = (Path(__file__).parents[3] / "docs" / "profiles.md").read_text(encoding="utf-8")
BOARD = PAGE.partition("```toml\n")[2].partition("```")[0]


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def firsts(title: str) -> set[str]:
    """The names in the first cells of a section's table."""
    return {name for line in section(title).splitlines() if line.startswith("| `")
            for name in re.findall(r"`([^`]+)`", line.split("|")[1])}  # fmt: skip


def test_the_keys() -> None:
    assert firsts("Keys of the profile") == set(Profile.model_fields) - {"id", "operators", "rules"} | {"extends"}
    assert firsts("Keys of `[[operators]]`") == set(Operators.model_fields) - {"decisive"}


def test_the_rules() -> None:
    assert firsts("Rules") - {"use ="} == set(kinds())
    for line in section("Rules").splitlines():
        if line.startswith("| `") and not line.startswith("| `use"):
            parameters = {field.name for field in fields(kinds()[line.split("`")[1]])} - {"operators"}
            assert set(re.findall(r"`(\w+) = ", line.split("|")[3])) == parameters


def test_the_built_in_profiles() -> None:
    rows = [line.split("|") for line in section("Built-in profiles").splitlines() if line.startswith("| `")]
    assert sorted(row[1].strip(" `") for row in rows) == list(built_in())
    for row in rows:
        profile = named(row[1].strip(" `"))
        counts = [str(len(profile.listed)), str(len(profile.refused) or ""), profile.unlisted]
        assert [cell.strip() for cell in row[3:6]] == counts


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ("g (float[1,3,8,8] x) => (y) <float[4,3,1,1] w> { y = Conv(x, w) }", ["fits"]),
        ("g (float[1,3,8,8] x, float[4,3,1,1] w) => (y) { y = Conv(x, w) }", ["refused"]),
        ("g (float[n,3,8,8] x) => (y) { y = Relu(x) }", ["refused"]),
        ("g (float16[1,3] x) => (y) { y = Relu(x) }", ["refused"]),
        ("g (float[1,3] x) => (y) { y = Relu(x) }", ["fits"]),
        ("g (float[1,3] x) => (y) { y = Erf(x) }", ["refused"]),
        ("g (float[1,3] x) => (y) <float s = {0.5}, int8 z = {0}> { y = QuantizeLinear(x, s, z) }", ["fits"]),
        ("g (float[1,3] x) => (y) <float s = {0.5}, int8 z = {1}> { y = QuantizeLinear(x, s, z) }", ["refused"]),
        ("g (float[1,3] x) => (y) <int64[2] s = {3, 1}> { y = Reshape(x, s) }", ["fits"]),
    ],
)
def test_the_board(graph: str, expected: list[str]) -> None:
    graph = graph.replace("<float[4,3,1,1] w>", "<float[4,3,1,1] w = {1,1,1,1,1,1,1,1,1,1,1,1}>")
    model = from_text(f'<ir_version: 8, opset_import: ["": 17]>\n{graph}')
    profile = parsed(BOARD, "board.toml", "board")
    assert [str(one.outlook) for one in foresee(model, profile)] == expected
    assert len(profile.listed) == 30
