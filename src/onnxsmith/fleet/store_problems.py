"""The problems of stores: what the file is, and what helps."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted

_NAME = "other.sqlite"
"""The name of a store that a fix proposes."""
_OPTION: ContextVar[str] = ContextVar("option", default="--store")
"""The option that names the store which a command writes: `merge` has another than `run`."""


def elsewhere() -> str:
    """Returns the path of a new store that this user may write: here, in the home folder, or among temporary files."""
    here, *others = (Path(), Path.home(), Path(tempfile.gettempdir()))
    if os.access(here, os.W_OK) and not (here / _NAME).exists():
        return _NAME
    folder = next((one for one in (here, *others) if os.access(one, os.W_OK)), here)
    names = (f"other-{number}.sqlite" if number else _NAME for number in range(100))
    return pasted(str(folder / next((name for name in names if not (folder / name).exists()), _NAME)))


def damaged(where: str, why: str) -> OnnxsmithError:
    """Returns the problem of a store, or of a run in it, whose bytes are not what was written."""
    is_local = "://" not in where
    away = f"move the file away: `mv {pasted(where)} {pasted(where + '.damaged')}`, so that a run makes a new one"
    return problem(
        "fleet/store",
        "the store is damaged",
        where=where,
        why=why,
        fix=f"restore it from a copy; or {away if is_local else 'remove it, so that a run makes a new store'}",
    )


def foreign(where: str, why: str) -> OnnxsmithError:
    """Returns the problem of a file that another program wrote."""
    return problem(
        "fleet/store",
        "the file is not a store of onnxsmith",
        where=where,
        why=why,
        fix=f"give another path: {_OPTION.get()} {elsewhere()}",
    )


def refuse_format(where: str, version: object, known: int) -> None:
    """Refuses a store whose format is not `known`: a later version of onnxsmith wrote it, or its number is damaged.

    Raises:
        OnnxsmithError: `fleet/store`.
    """
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise damaged(where, f"the number of its format is {version!r}")
    if version > known:
        raise problem(
            "fleet/store",
            "a later version of onnxsmith wrote the store",
            where=where,
            why=f"the store has format {version}, but this version of onnxsmith reads {known}",
            fix=f"use the version of onnxsmith that wrote it; or give another store: {_OPTION.get()} {elsewhere()}",
        )


def refused(address: str, error: Exception) -> OnnxsmithError:
    """Returns the problem of a store that takes no more rows."""
    said = str(error)
    is_full = (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)) or "is full" in said
    if is_full:
        return problem(
            "fleet/store-full",
            "the disk of the store is full",
            where=address,
            why=said,
            fix="free some space and run again: the rows in the store are kept",
        )
    return problem(
        "fleet/store-refused",
        "the store cannot be written",
        where=address,
        why=said,
        fix=f"give a store that you may write to: {_OPTION.get()} {elsewhere()}",
    )


@contextmanager
def as_target() -> Iterator[None]:
    """Makes problems in the block name the option of `merge` for the store that is written to."""
    token = _OPTION.set("-o")
    try:
        yield
    finally:
        _OPTION.reset(token)


@contextmanager
def as_source(address: str) -> Iterator[None]:
    """Says of a store that `merge` cannot read that it can be left out."""
    try:
        yield
    except OnnxsmithError as error:
        found = error.problem
        if found.id != "fleet/store":
            raise
        fix = f"restore it from a copy; or leave {pasted(address)} out of the stores to merge"
        raise OnnxsmithError(replace(found, fix=fix)) from error
