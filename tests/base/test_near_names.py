"""Names that somebody may have meant."""

from __future__ import annotations

import difflib

import pytest

from onnxsmith.base.near_names import LONGEST, near_names

KNOWN = ["relu", "gelu", "x" * (LONGEST + 1)]


def test_the_most_similar_name_is_the_first() -> None:
    assert near_names("rellu", KNOWN, 1) == ["relu"]
    assert near_names("elu", KNOWN) == ["relu", "gelu"]
    assert near_names("softmax", KNOWN) == []


def test_long_names_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """difflib takes seconds for a name of megabytes."""
    compared: list[str] = []

    def get_close_matches(name: str, known: list[str], *_: object) -> list[str]:
        compared.extend([name, *known])
        return []

    monkeypatch.setattr(difflib, "get_close_matches", get_close_matches)
    near_names("x" * (LONGEST + 1), KNOWN)
    near_names("x" * LONGEST, KNOWN)
    assert sorted(map(len, compared)) == [4, 4, LONGEST]
