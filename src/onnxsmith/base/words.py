"""Writes counts, lists and long texts for people: each of these in one form everywhere."""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Collection, Iterable
from decimal import ROUND_UP, Decimal

from onnxsmith.base.near_names import near_names
from onnxsmith.base.printable import one_line


def several(count: int, noun: str, plural: str = "") -> str:
    """`1 node`, `2 nodes`, `1,024 nodes`, `2 entries`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def pasted(text: object) -> str:
    """Returns a name or a path as one word of a command that the user pastes: in quotes where a shell needs them."""
    word = str(text)
    if "\n" not in word:
        return shlex.quote(word)  # noqa: TID251
    escaped = word.replace("\\", r"\\").replace("'", r"\'").replace("\n", r"\n")
    return f"$'{escaped}'"  # as bash and zsh write it: a line of its own could be taken for one of onnxsmith's


def pasted_words(words: Iterable[object]) -> str:
    """Returns words as a command that the user pastes."""
    return " ".join(map(pasted, words))


def listed(names: Iterable[str]) -> str:
    """`a, b, c`: names of a model, each as a message shows it."""
    return ", ".join(map(one_line, names))


def nodes_and_constants(nodes: int, constants: int) -> str:
    """`64 nodes`, `64 nodes and 36 Constants`: counts of nodes leave `Constant` nodes out."""
    return several(nodes, "node") + (f" and {several(constants, 'Constant')}" if constants else "")


def constants_change(before: int, after: int) -> str:
    """`36 → 0, not counted above` for `Constant` nodes; "" for two models without any."""
    return f"{before:,} → {after:,}, not counted above" if before or after else ""


def plural(noun: str) -> str:
    """`named tensors`; `tensors that are not a graph output`."""
    first, that, rest = noun.partition(" that is ")
    return f"{first}s that are {rest}" if that else f"{first}s"


def first_few(texts: Collection[str], most: int, between: str = ", ") -> str:
    """Lists the first texts, and counts those after `most`: `a, b and 3 more`, or `a; b; and 3 more`."""
    shown = between.join(map(one_line, itertools.islice(texts, most)))
    more = len(texts) - most
    return f"{shown}{';' * (between == '; ')} and {more:,} more" if more > 0 else shown


_DIGITS = 17
"""Decimal digits that tell any two different floats apart (IEEE 754-2019, section 5.12.2)."""


_NEAR = 0.25
"""The share of a difference by which rounding may change it. A choice: 0.99997 and 0.99991 are not written as 1 and
0.9999."""


def told_apart(*numbers: float, digits: int = 6) -> tuple[str, ...]:
    """Writes numbers with as many significant digits as show how far apart they are, and with `digits` at least."""
    known = sorted({number for number in numbers if math.isfinite(number)})
    gaps = list(itertools.pairwise(known))

    def shows(count: int) -> bool:
        seen = [float(f"{number:.{count}g}") for number in known]
        pairs = zip(itertools.pairwise(seen), gaps, strict=True)
        return all(abs((d - c) - (b - a)) <= _NEAR * (b - a) for (c, d), (a, b) in pairs)

    count = next(filter(shows, range(digits, _DIGITS)), _DIGITS)
    return tuple(f"{number:.{count}g}" for number in numbers)


def rounded_up(number: float) -> str:
    """Writes a positive number with one digit, rounded up: `0.0011` as `0.002`."""
    exact = Decimal(number)
    return f"{float(exact.quantize(Decimal(1).scaleb(exact.adjusted()), ROUND_UP)):g}"


def change(before: float, after: float, digits: int = 6) -> str:
    """Writes a score before and after a change: `0.75 → 0.749`, `1 → 0.9999998`, `equal at 0.75`."""
    if before == after:
        return f"equal at {before:.{digits}g}"
    return " → ".join(told_apart(before, after, digits=digits))


def of_one(ratio: float, decimals: int = 2) -> str:
    """Writes a ratio so that only a ratio of exactly 1 looks like 1: `0.52`, `1.0004`, `1.00`."""
    enough = (count for count in range(decimals, _DIGITS) if ratio == 1 or float(f"{ratio:.{count}f}") != 1)
    return f"{ratio:.{next(enough, _DIGITS)}f}"


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(i?))?B?", re.IGNORECASE)
SIZE_UNITS = "B, KB, MB, GB and TB, each 1000 times the one before; or KiB, MiB, GiB and TiB, each 1024 times"
"""Says which units `byte_count` reads."""


def byte_count(text: str) -> int | None:
    """Reads a size as bytes: `16GB` and `500 MB` in units of 1000, `16GiB` in units of 1024; None if the text is no
    size. A part of a byte counts as one: 0 means no limit, and only 0 gives it."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    power = " KMGT".index((match[2] or " ").upper())
    return math.ceil(Decimal(match[1]) * Decimal(1024 if match[3] else 1000) ** power)


_UNITS = ("B", "KB", "MB", "GB", "TB")


def size(count: int) -> str:
    """Formats bytes in units of 1000: `10 B`, `1.5 KB`, `2.30 GB`."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:  # from 999.5 on, three digits round to 1000
        value, unit = value / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"


def shortened(text: str, longest: int) -> str:
    """Cuts a text of more than `longest` characters, and ends it with `…`."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def in_place_of(wrong: str, known: Collection[str], most: int = 0) -> str:
    """Tells which of the known names to write in place of a wrong one: the nearest, if one is near, and all of them.
    With `most`, no more are listed than that, and the others are counted."""
    meant, listed = nearest(wrong, known), first_few(known, most or len(known))
    return f"write {meant} in place of {wrong} (there are: {listed})" if meant else f"one of: {listed}"


def abbreviated(short: str, names: Iterable[str]) -> list[str]:
    """Returns the names that a short name abbreviates word by word, the shortest first: `conv-bn` may stand for
    `conv-batchnorm`."""
    return sorted((name for name in names if _abbreviates(short, name)), key=len)


def _abbreviates(short: str, name: str) -> bool:
    """Whether each word of `short` has letters of the word at its place in `name`, in their order, the first first."""
    words, wanted = (re.split(r"[-_/ ]", text) for text in (short, name))
    if len(words) != len(wanted):
        return False
    return all(word[:1] == whole[:1] and _in_order(word, whole) for word, whole in zip(words, wanted, strict=True))


def _in_order(letters: str, word: str) -> bool:
    left = iter(word)
    return all(letter in left for letter in letters)


_SIMILAR = 0.6
"""The similarity from which on a name may be meant (difflib): `kep-names` is no `keep-open`. A choice."""


_LEAST = 3
"""The letters from which on a beginning of a name may be meant. A choice."""


_LONGEST = 1_000
"""The letters up to which a name is compared. A choice: nobody types a longer one, and the time grows by the square."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Returns the name that is most similar to a mistyped name, or begins with it; None if there is none."""

    if len(name) > _LONGEST:
        return None
    by_small = {one.lower(): one for one in names if len(one) <= _LONGEST}
    small = name.lower()
    longer = [one for one in by_small if len(small) >= _LEAST and one.startswith(small)]
    found = abbreviated(small, by_small) or near_names(small, by_small, 1, _SIMILAR) or longer
    return by_small[found[0]] if found else None
