"""Sizes stay in the ranges that the user and the file give, and fit the relations between axes."""

from __future__ import annotations

from typing import Any

import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.structure.dim_ranges import Range, read
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.verification.inputs.size_limits import SizeLimits, refuse_unknown
from onnxsmith.verification.inputs.size_proposals import bases


def interface(*shapes: tuple[Any, ...], **relations: str) -> Signature:
    ports = tuple(Port(f"x{number}", "float", shape) for number, shape in enumerate(shapes))
    return Signature(ports, ()).related(relations)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("h=120", 120),
        ("h=0", 0),
        ("h=64..1024", Range(64, 1024)),
        ("h=64..", Range(64)),
        ("h=..1024", Range(0, 1024)),
        ("h=7..7", 7),
        ("h=1:4:16", Range(1, 16, 4)),
        ("x.0=1..2", Range(1, 2)),
    ],
)
def test_a_text_is_a_size_or_a_range(text: str, size: object) -> None:
    assert read([text]) == {text.partition("=")[0]: size}


@pytest.mark.parametrize("given", [(64, 1024), [64, 1024], "64..1024", (64, 100, 1024), Range(64, 1024)])
def test_python_gives_a_pair_or_a_text(given: Any) -> None:
    found = read({"h": given})["h"]
    assert isinstance(found, Range)
    assert (found.least, found.most) == (64, 1024)


@pytest.mark.parametrize(
    ("text", "fix"),
    [("h=10..5", "h=5..10"), ("h=-3", "h=3"), ("h=-3..5", "h=..5"), ("h=4:20:16", "h=4..16"), ("h=..-4", "h=..0")],
)
def test_a_range_without_a_size_is_refused(text: str, fix: str) -> None:
    with pytest.raises(OnnxsmithError, match="no dimension can have the size") as caught:
        read([text])
    assert caught.value.problem.id == "input/size-range"
    assert caught.value.problem.fix == f"--dim {fix}"
    read([fix])


@pytest.mark.parametrize("text", ["h", "=3", "h=", "h=a..b", "h=1:2", "h=1:2:3:4", "h=1.5"])
def test_other_texts_are_no_sizes(text: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        read([text])
    assert caught.value.problem.id == "input/syntax"


@pytest.mark.parametrize("given", [{"h": 1.5}, {"h": None}, {"h": (1, "x")}])
def test_other_values_are_no_sizes(given: Any) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        read(given)
    assert caught.value.problem.id == "input/syntax"


@pytest.mark.parametrize(
    "asked", [["h=64..1024"], ["h=700..1400", "w=..9"], ["h=5000.."], ["h=3..3", "w=2..4"], ["h=0..1"]]
)
def test_every_proposal_is_in_the_range(asked: list[str]) -> None:
    signature = interface(("batch", 3, "h", "w"))
    limits = SizeLimits(signature, asked)
    found = list(bases(signature, limits.known, limits))
    assert len({one["h"] for one in found}) > 1 or asked[0] in ("h=3..3", "h=0..1")
    for one in found:
        for name, size in read(asked).items():
            assert size == one[name] if isinstance(size, int) else size.holds(one[name])


RELATED = [
    (interface(("seq",), ("past",), past="32 - seq"), "past", lambda s: 32 - s["seq"]),
    (interface(("n",), ("m",), m="2*n + 1"), "m", lambda s: 2 * s["n"] + 1),
    (interface(("a",), ("b",), ("total",), total="a + b"), "total", lambda s: s["a"] + s["b"]),
    (interface(("a",), ("b",), ("rest",), rest="40 - a - b"), "rest", lambda s: 40 - s["a"] - s["b"]),
]


@pytest.mark.parametrize(("signature", "name", "size"), RELATED)
@pytest.mark.parametrize("asked", ["{}=5..17", "{}=7", "{}=..9", "{}=3.."])
def test_a_range_of_a_tied_axis_is_solved(signature: Signature, name: str, size: Any, asked: str) -> None:
    limits = SizeLimits(signature, [asked.format(name)])
    wanted = read([asked.format(name)])[name]
    found = list(bases(signature, limits.known, limits))
    assert found
    for one in found:
        assert size(one) == wanted if isinstance(wanted, int) else wanted.holds(size(one))


@pytest.mark.parametrize(("signature", "name", "size"), RELATED)
def test_a_relation_alone_gives_sizes_that_fit(signature: Signature, name: str, size: Any) -> None:
    limits = SizeLimits(signature, None)
    found = list(bases(signature, limits.known, limits))
    assert len({size(one) for one in found}) > 2
    assert all(size(one) > 0 for one in found)


def test_a_fixed_tied_axis_fixes_the_axis_that_it_follows_from() -> None:
    assert SizeLimits(RELATED[0][0], ["past=20"]).known == {"seq": 12}
    assert SizeLimits(RELATED[1][0], ["m=9"]).known == {"n": 4}


@pytest.mark.parametrize("asked", [["seq=40"], ["seq=40..50"], ["past=33"], ["seq=10", "past=10"], ["past=33.."]])
def test_sizes_outside_of_a_relation_are_refused(asked: list[str]) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        SizeLimits(RELATED[0][0], asked)
    assert caught.value.problem.id == "input/size-range"
    assert "past is 32 - seq" in caught.value.problem.why
    fix = caught.value.problem.fix
    if fix.startswith("--dim "):
        SizeLimits(RELATED[0][0], [fix.removeprefix("--dim ")])
    else:
        assert fix.startswith("remove --dim past")
        SizeLimits(RELATED[0][0], [one for one in asked if not one.startswith("past")])


def test_a_size_of_the_user_replaces_the_range_of_the_file() -> None:
    signature = Signature(interface(("h",)).inputs, (), {"h": Range(64, 1024)})
    assert [SizeLimits(signature, asked).allows({"h": 8}) for asked in (None, ["h=8"], ["h=1..9"])] == [
        False,
        True,
        True,
    ]


def test_an_unknown_name_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(OnnxsmithError) as caught:
        refuse_unknown(["hight=3..9"], interface(("height", "width")))
    assert (caught.value.problem.id, caught.value.problem.fix) == ("input/unknown-dim", "write --dim height=3..9")
    refuse_unknown(["past=3"], RELATED[0][0])
