"""Files that fsspec reads: object stores, web servers, archives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.fleet.sources.base import Model, Source

_IDENTITY = ("ETag", "etag", "checksum", "md5", "mtime", "LastModified", "last_modified", "created", "size")
"""Names of the properties that change with the bytes, in the file systems of fsspec."""


class Address(Source):
    """`s3://bucket/models/*.onnx`, `https://host/a.onnx`, `file:///mnt/models/a.onnx`.

    A cell fetches the file, and `NAME.data` beside it if there is one. The properties that the store tells of a file
    (checksum, time, size) stand for its bytes.
    """

    rank = 0

    def takes(self, text: str, folder: Path) -> bool:
        return "://" in text

    def models(self, text: str, folder: Path) -> Sequence[Model]:
        system, path = opened(text)
        try:
            paths = sorted(system.glob(path)) if "*" in path else [path] if system.exists(path) else []
            return [self._model(system, one) for one in paths]
        except Exception as error:  # each file system raises errors of its own
            raise unreachable(text, error) from error

    def _model(self, system: Any, path: str) -> Model:
        address = str(system.unstrip_protocol(path))
        about = system.info(path)
        known = {name: str(about[name]) for name in _IDENTITY if about.get(name) is not None}
        stamp = hashlib.sha256(json.dumps([address, known], sort_keys=True).encode()).hexdigest()
        return Model(address, PurePosixPath(path).name, is_file=True, stamp=stamp, address=address)


def opened(address: str) -> tuple[Any, str]:
    """Returns the file system of an address, and the path in it.

    Raises:
        OnnxsmithError: `fleet/fsspec` if the library or its plug-in is missing; `fleet/unreachable`.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise _missing(address, error, "fsspec") from error
    try:
        return url_to_fs(address)  # type: ignore[no-any-return]
    except ImportError as error:
        raise _missing(address, error, str(error)) from error
    except Exception as error:
        raise unreachable(address, error) from error


def unreachable(address: str, error: Exception) -> OnnxsmithError:
    """Returns the problem of an address that cannot be read or written."""
    return problem(
        "fleet/unreachable",
        "the address cannot be reached",
        where=address,
        why=f"{type(error).__name__}: {error}",
        fix="check the address and the credentials",
    )


def _missing(address: str, error: Exception, what: str) -> OnnxsmithError:
    return problem(
        "fleet/fsspec",
        "a package that reads this address is not installed",
        where=address,
        why=f"{type(error).__name__}: {what}",
        fix='`pip install "onnxsmith[fleet]"`, and the package that the message names, such as s3fs',
    )


def fetched(address: str, folder: Path) -> str:
    """Copies the file at an address, and `NAME.data` beside it if there is one, into a new folder. Returns its path.

    Raises:
        OnnxsmithError: `fleet/unreachable`, `fleet/fsspec`.
    """
    system, path = opened(address)
    folder.mkdir()
    target = folder / PurePosixPath(path).name
    try:
        system.get_file(path, str(target))
        if system.exists(f"{path}.data"):
            system.get_file(f"{path}.data", f"{target}.data")
    except Exception as error:
        raise unreachable(address, error) from error
    return str(target)
