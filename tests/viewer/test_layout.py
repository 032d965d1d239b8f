"""The layout of a room: rows, places, bends, and what happens to graphs that the library cannot lay out."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onnxsmith
from onnxsmith.viewer import room_contents
from onnxsmith.viewer.layout import sugiyama
from onnxsmith.viewer.layout.arrange import APART, arranged, in_rows
from onnxsmith.viewer.layout.graph import Graph, Layout, components, from_end


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs without cycles: every edge leads to a higher number."""
    count = draw(st.integers(0, 14))
    pairs = [(one, other) for other in range(count) for one in range(other)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=24)) if pairs else []
    return Graph(count, tuple(sorted(chosen)))


def assert_legible(graph: Graph, layout: Layout) -> None:
    """No two items overlap, edges point down, and each bends once in every row between, clear of the items."""
    assert layout.problem(graph.edges) == ""
    assert len(layout.rows) == len(layout.x) == graph.count
    assert min(layout.rows, default=0) == 0
    levels: dict[int, list[float]] = {}
    for row, x in zip(layout.rows, layout.x, strict=True):
        levels.setdefault(row, []).append(x)
    for places in levels.values():
        ordered = sorted(places)
        assert all(b - a > APART - 0.01 for a, b in itertools.pairwise(ordered))
    for (one, other), bends in layout.bends.items():
        for step, x in enumerate(bends, 1):
            assert layout.rows[one] < layout.rows[one] + step < layout.rows[other]
            assert all(abs(x - place) > 0.5 for place in levels.get(layout.rows[one] + step, ()))


@settings(max_examples=60)
@given(st.lists(graphs(), max_size=6))
def test_every_graph_is_legible(given: list[Graph]) -> None:
    found, notes = arranged(given)
    assert notes == []
    for graph in given:
        assert_legible(graph, found[graph])


@given(graphs())
def test_the_plain_layout_is_legible(graph: Graph) -> None:
    assert_legible(graph, in_rows(graph))


@settings(max_examples=20)
@given(graphs())
def test_the_same_graph_has_the_same_layout(graph: Graph) -> None:
    one, other = (vars(arranged([graph])[0][graph]) for _ in range(2))
    assert one == other


def test_the_same_in_every_process() -> None:
    code = (
        "import json; from onnxsmith.viewer.layout.arrange import arranged; "
        "from onnxsmith.viewer.layout.graph import Graph; "
        "g = Graph(40, tuple(sorted({(i * 7 % (k + 1), k + 1) for k in range(38) for i in range(3)}))); "
        "l = arranged([g])[0][g]; print(json.dumps([l.rows, l.x, sorted(map(str, l.bends.items()))]))"
    )
    paths = [str(Path(onnxsmith.__file__).parent.parent), *sys.path]
    found = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        found.add(json.dumps(json.loads(done.stdout)))
    assert len(found) == 1


def test_a_large_room_is_laid_out_by_the_quick_ranking() -> None:
    edges = {(at, at + 1) for at in range(1500)} | {(at, at + 3) for at in range(0, 1490, 5)}
    graph = Graph(1501, tuple(sorted(edges)))
    found, notes = arranged([graph])
    assert notes == []
    assert_legible(graph, found[graph])
    assert max(found[graph].rows) == 1500


def test_constants_stand_above_their_readers_in_a_large_room() -> None:
    edges = {(at + 1, at + 2) for at in range(1500)} | {(0, 1400)}
    graph = Graph(1502, tuple(sorted(edges)))
    layout = arranged([graph])[0][graph]
    assert layout.rows[1400] - layout.rows[0] == 1


def test_a_crash_of_the_library_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A self loop ends the process of the library; the other graphs are laid out all the same."""
    loop, good = Graph(2, ((0, 0), (0, 1))), Graph(2, ((0, 1),))
    first, second = sugiyama.layouts([loop, good])
    assert first == "fast-sugiyama ended with signal SIGABRT"
    assert isinstance(second, Layout)
    monkeypatch.setattr(sugiyama, "layouts", lambda graphs: ["it fell"] * len(graphs))
    found, notes = arranged([good])
    assert notes == ["a part of the model is drawn in plain rows: it fell"]
    assert_legible(good, found[good])


def test_a_library_that_is_too_slow_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sugiyama, "_SECONDS", 0.0)
    (found,) = sugiyama.layouts([Graph(2, ((0, 1),))])
    assert found == "fast-sugiyama took longer than 0 s"


def test_repeated_crashes_end() -> None:
    loop = Graph(2, ((0, 0), (0, 1)))
    assert len(list(sugiyama.layouts([loop] * 9))) == 9


def test_a_missing_library_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    graph = Graph(2, ((0, 1),))
    found, notes = arranged([graph])
    assert notes == ["a part of the model is drawn in plain rows: fast-sugiyama is not installed"]
    assert_legible(graph, found[graph])


def test_parts_are_packed_into_a_rectangle() -> None:
    graph = Graph(200, ())
    layout = arranged([graph])[0][graph]
    assert 5 < max(layout.rows) < 30
    assert max(layout.x) < 40


def test_long_edges_become_stubs() -> None:
    edges = [(at, at + 1, at) for at in range(60)] + [(0, 50, 0), (10, 20, 10)]
    assert room_contents.chosen_stubs(61, edges) == {(0, 50, 0)}


def test_values_with_many_readers_become_stubs() -> None:
    edges = [(0, at, 0) for at in range(1, 20)] + [(at, at + 1, at) for at in range(1, 19)]
    assert room_contents.chosen_stubs(20, edges) == {(0, at, 0) for at in range(2, 20)}


def test_bends_are_bounded() -> None:
    edges = [(at, at + 1, at) for at in range(2000)] + [(at, at + 20, at) for at in range(1900)]
    cut = room_contents.chosen_stubs(2001, edges)
    kept = [(one, other) for one, other, value in edges if (one, other, value) not in cut]
    assert sum(other - one - 1 for one, other in kept) <= 400 + 2 * 2001


@given(graphs())
def test_ranks(graph: Graph) -> None:
    rows = from_end(graph.count, graph.edges)
    assert all(rows[one] < rows[other] for one, other in graph.edges)
    groups = components(graph.count, graph.edges)
    assert sorted(item for group in groups for item in group) == list(range(graph.count))
