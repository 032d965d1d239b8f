"""Words: counts, the first few of a list, shortened texts, scores and ratios."""

from __future__ import annotations

import subprocess

import pytest

from onnxsmith.base.words import (
    abbreviated,
    byte_count,
    change,
    first_few,
    listed,
    nearest,
    of_one,
    pasted,
    several,
    shortened,
    told_apart,
)


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


def test_a_name_makes_no_line_of_its_own() -> None:
    assert listed(["a\nb", "c"]) == r"a\nb, c"
    assert first_few(["a\nb", "c"], 1) == r"a\nb and 1 more"
    word = pasted("it's\n a \\")
    assert "\n" not in word
    done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True, check=True)
    assert done.stdout == "it's\n a \\"


def test_shortened() -> None:
    assert [shortened(text, 4) for text in ("abcd", "abcde")] == ["abcd", "abc…"]


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ((1.0, 0.99999), ("1", "0.99999")),
        ((0.99997, 0.99991), ("0.99997", "0.99991")),
        ((1.0, 0.9999999), ("1", "0.9999999")),
        ((0.1, 0.1 + 2**-56), ("0.10000000000000001", "0.10000000000000002")),
        ((0.75, 0.75), ("0.75", "0.75")),
        ((float("nan"), 0.75, 0.7500001), ("nan", "0.75", "0.7500001")),
        ((), ()),
    ],
)
def test_different_numbers_look_different(numbers: tuple[float, ...], texts: tuple[str, ...]) -> None:
    assert told_apart(*numbers, digits=4) == texts


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (0.75, 0.7, "0.75 → 0.7"),
        (1.0, 0.99999998, "1 → 0.99999998"),
        (0.75, 0.75, "equal at 0.75"),
        (0.75, float("nan"), "0.75 → nan"),
    ],
)
def test_a_change(before: float, after: float, text: str) -> None:
    assert change(before, after, 4) == text


@pytest.mark.parametrize(("ratio", "text"), [(0.5, "0.50"), (1.0, "1.00"), (1.0004, "1.0004"), (0.999, "0.999")])
def test_only_one_looks_like_one(ratio: float, text: str) -> None:
    assert of_one(ratio) == text


SIZES = {
    "0": 0, "10": 10, "7b": 7, "500KB": 500_000, "1.5 MB": 1_500_000, "16GiB": 2**34, "2t": 2 * 10**12,
    "500kib": 500 * 2**10, "1.5 MiB": 3 * 2**19, "2Ti": 2**41, "1Gb": 10**9,
    "": None, "-1": None, "MB": None, "1 PB": None, "1,5MB": None, "KB1": None,
    "5iB": None, "i": None, "1.2.3MB": None, "nan": None, "inf": None, "1e3": None, "0.1": 1, "0.0": 0,
    "100MB": 10**8, "100MiB": 100 * 2**20, "1" + "0" * 400: 10**400,
}  # fmt: skip


@pytest.mark.parametrize(("text", "count"), SIZES.items())
def test_a_size_in_bytes(text: str, count: int | None) -> None:
    assert byte_count(text) == count


def test_words_that_abbreviate_a_name() -> None:
    names = ["fuse/conv-bias", "fuse/conv-batchnorm", "fuse/conv-mul"]
    assert abbreviated("fuse/conv-bn", names) == ["fuse/conv-batchnorm"]
    assert nearest("fuse/conv-bn", names) == "fuse/conv-batchnorm"
    assert abbreviated("conv-bn", names) == []
    assert nearest("fuse/conv-bais", names) == "fuse/conv-bias"


def test_a_name_that_is_far_is_not_meant() -> None:
    assert nearest("kep-names", ["keep-open", "opset"]) is None
    assert nearest("kep-names", ["keep-open", "keep-names"]) == "keep-names"


def test_the_beginning_of_a_name_is_near() -> None:
    assert nearest("same", ["NOTSET", "SAME_UPPER", "VALID"]) == "SAME_UPPER"
    assert nearest("kep-names", ["keep-open", "output"]) is None
