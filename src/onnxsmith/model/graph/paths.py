"""Names of files that are no text: on Linux a name is bytes, and Python keeps those that are no UTF-8 as surrogates."""

from __future__ import annotations

from pathlib import Path


def is_text(path: Path) -> bool:
    """Whether a path is UTF-8: one that is not cannot be handed to native libraries, nor stand in a model."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(name: str) -> str:
    """The name as a model can hold it: what is no UTF-8 becomes underscores."""
    return "".join("_" if "\ud800" <= character <= "\udfff" else character for character in name)
