"""Opens the files that users give, and reads texts, TOML and JSON. Refuses pipes and devices. Sizes and depths of
texts, and integers in them, have bounds, and all that is wrong with a file is an `OSError` or a `ValueError`."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

MOST = 2**28
"""Limits the bytes of a text. A choice: far above every plan, patch and record."""
_DEEPEST = 100
"""Limits the depth of lists and tables in each other. A choice: no file nests so deep, and what reads the content
recurses."""
_IN_TOML, _IN_JSON = 64, 1023
"""Limit the bits of an integer. TOML allows no larger ones, and no tensor holds them. JSON of other programs has larger
ones: transformers writes 10^30 for a length without a limit. Above 1,023 bits, none can become a float."""
_TOO_DEEP = f"lists or tables are nested over {_DEEPEST} deep"


def read_utf8(path: Path) -> str:
    """Returns the text of a file in UTF-8, without the mark that some editors write in front of it.

    Raises:
        OSError: the file cannot be read, is a pipe or a device, or is too large.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_bytes(path).decode("utf-8-sig")


def read_bytes(path: Path) -> bytes:
    """Returns the bytes of a text file.

    Raises:
        OSError: as `read_utf8`.
    """
    with opened(path) as file:
        content = file.read(MOST + 1)
    if len(content) > MOST:
        raise OSError(errno.EFBIG, f"the file has more than {MOST:,} bytes", str(path))
    return content


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """Opens a file for reading.

    Raises:
        OSError: the file cannot be read, or is a pipe or a device.
    """
    refuse_special(path)
    with path.open("rb") as file:
        yield file


def refuse_special(path: Path) -> None:
    """Refuses a pipe or a device, which may have no end.

    Raises:
        OSError: the path is one.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "this is a pipe or a device, and not a file", str(path))


def parse_toml(text: str) -> dict[str, Any]:
    """Returns the content of a text in TOML.

    Raises:
        ValueError: it is not TOML (`tomllib.TOMLDecodeError`), nests too deep, or has an integer of over 64 bits.
    """
    import tomllib

    found: dict[str, Any] = _parsed(tomllib.loads, text, _IN_TOML)
    return found


def parse_json(text: str | bytes) -> Any:
    """Returns the content of a text in JSON.

    Raises:
        ValueError: it is not JSON, nests too deep, or has an integer of over 1,023 bits.
    """
    return _parsed(json.loads, text, _IN_JSON)


def _parsed(parse: Callable[[Any], Any], text: str | bytes, bits: int) -> Any:
    try:
        found = parse(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _refuse_extreme(found, bits)
    return found


def _refuse_extreme(content: Any, bits: int) -> None:
    level = [content]
    for _ in range(_DEEPEST):
        wide = max((one.bit_length() for one in level if isinstance(one, int)), default=0)
        if wide > bits:
            raise ValueError(f"an integer has {wide:,} bits, and {bits:,} are allowed")
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    if any(isinstance(one, dict | list) for one in level):
        raise ValueError(_TOO_DEEP)
