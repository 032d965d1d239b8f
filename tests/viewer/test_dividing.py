"""How a graph is divided: parts that do not depend on each other in a circle, and blocks that repeat."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.viewer.tree import Block, Part, divided, folded


@st.composite
def sources(draw: st.DrawFn) -> list[list[int]]:
    count = draw(st.integers(0, 16))
    return [sorted(draw(st.sets(st.integers(0, at - 1), max_size=3))) if at else [] for at in range(count)]


def has_cycle(parts: list[Part], read: list[list[int]]) -> bool:
    home = {node: at for at, part in enumerate(parts) for node in part.nodes}
    before = {at: {home[s] for node in part.nodes for s in read[node]} - {at} for at, part in enumerate(parts)}
    while before:
        free = [at for at, waits in before.items() if not waits & before.keys()]
        if not free:
            return True
        for at in free:
            del before[at]
    return False


@given(sources(), st.data())
def test_parts_never_depend_on_each_other_in_a_circle(read: list[list[int]], data: st.DataObject) -> None:
    key = st.sampled_from([None, "a", "b", "c"])
    keys = {node: data.draw(key) for node in range(len(read))}
    parts = divided(range(len(read)), keys, read)
    assert sorted(node for part in parts for node in part.nodes) == list(range(len(read)))
    assert all(keys[node] == part.key for part in parts for node in part.nodes)
    assert not has_cycle(parts, read)


def test_a_module_that_is_not_left_is_one_part() -> None:
    parts = divided(range(4), {0: "m", 1: None, 2: "m", 3: "m"}, [[], [], [0, 1], [2]])
    assert [(part.key, part.nodes) for part in parts] == [("m", [0, 2, 3]), (None, [1])]


def test_a_module_that_is_entered_again_is_two_parts() -> None:
    parts = divided(range(3), {0: "m", 1: None, 2: "m"}, [[], [0], [1]])
    assert [(part.key, part.nodes) for part in parts] == [("m", [0]), (None, [1]), ("m", [2])]


def test_two_modules_across_each_other() -> None:
    """No node of either leads back to its module, but together they would be a circle."""
    parts = divided(range(4), {0: "g", 1: "h", 2: "g", 3: "h"}, [[], [], [1], [0]])
    assert not has_cycle(parts, [[], [], [1], [0]])
    assert len(parts) == 3


def test_the_work_of_dividing_is_bounded() -> None:
    count = 20_000
    read = [[at - 1] if at else [] for at in range(count)]
    began = time.process_time()
    parts = divided(range(count), {at: "m" if at % 2 else None for at in range(count)}, read)
    assert len(parts) == count
    assert time.process_time() - began < 5


def chained(text: str) -> tuple[range, list[str], list[list[int]]]:
    return range(len(text)), list(text), [[at - 1] if at else [] for at in range(len(text))]


def shown(items: list[Block | int]) -> str:
    return "".join(
        "." if isinstance(item, int) else f"<{item.number}/{item.of}:{shown(list(item.items))}>" for item in items
    )


def test_blocks() -> None:
    assert shown(folded(*chained("S" + "abcde" * 3 + "E"))) == ".<1/3:.....><2/3:.....><3/3:.....>."
    assert shown(folded(*chained("abcdefgh"))) == "........"
    assert shown(folded(*chained("abcdabcd"))) == "........", "by chance"


def test_blocks_of_blocks() -> None:
    found = shown(folded(*chained(("abcd" * 3 + "wxyz") * 2)))
    inner = "<1/3:....><2/3:....><3/3:....>...."
    assert found == f"<1/2:{inner}><2/2:{inner}>"


def test_blocks_begin_where_the_fewest_values_cross() -> None:
    """A residual connection around `bcd`: a block that began at `c` would cut it."""
    text = "abcd" * 3
    read = [[at - 1] if at else [] for at in range(12)]
    for start in (0, 4, 8):
        read[start + 3].append(start)
    found = folded(range(12), list(text), read)
    assert [item.items for item in found if isinstance(item, Block)] == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)]


@given(st.text("ab", max_size=40))
def test_no_node_is_lost(text: str) -> None:
    def flat(items: list[Block | int]) -> list[int]:
        return [one for item in items for one in ([item] if isinstance(item, int) else flat(list(item.items)))]

    assert flat(folded(*chained(text))) == list(range(len(text)))
