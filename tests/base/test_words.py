"""Words: counts, the first few of a list, shortened texts."""

from __future__ import annotations

import pytest

from onnxsmith.base.words import first_few, several, shortened


@pytest.mark.parametrize(
    ("texts", "between", "text"),
    [
        ([], ", ", ""),
        (["a", "b"], ", ", "a, b"),
        (["a", "b", "c", "d"], ", ", "a, b and 2 more"),
        (["a", "b", "c"], "; ", "a; b; and 1 more"),
        (["a", "b", "c"], " or ", "a or b and 1 more"),
        (dict.fromkeys("abc"), ", ", "a, b and 1 more"),
    ],
)
def test_the_first_few(texts: list[str], between: str, text: str) -> None:
    assert first_few(texts, 2, between) == text


def test_several() -> None:
    assert [several(count, "entry", "entries") for count in (1, 2, 1024)] == ["1 entry", "2 entries", "1,024 entries"]


def test_shortened() -> None:
    assert [shortened(text, 4) for text in ("abcd", "abcde")] == ["abcd", "abc…"]
