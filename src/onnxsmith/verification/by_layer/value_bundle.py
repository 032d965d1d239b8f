"""Saves values of a model on one input in a file: inputs, outputs and intermediate tensors by name, and their origin.

A bundle is a `.safetensors` or an `.npz` that other programs can read too. A JSON text holds everything else: the
inputs and outputs among the entries, the arrays that form a list, the ONNX dtypes, the model's hash, the runtime and
the seed. The text is under the key `onnxsmith` of the safetensors metadata, or in the array of bytes `onnxsmith.json`
of the `.npz`. The key of an array is the name of its value; in an `.npz`, a name that would be a path out of a folder
gets another key. If a format lacks a dtype, the values' bits are stored (bfloat16 as uint16 in an `.npz`). Strings are
stored as JSON, complex numbers as pairs. Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np

from onnxsmith.base import devices, folders, user_files
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted
from onnxsmith.graph.files.array_files import free_key, member
from onnxsmith.graph.files.save import unwritten
from onnxsmith.graph.structure.tensor_paths import near
from onnxsmith.runtimes._dtypes import name_of, numpy_dtype
from onnxsmith.runtimes.base import Array, Value
from onnxsmith.verification.by_layer import _npz, _safetensors

FORMAT = 1
SUFFIXES = (".safetensors", ".npz")
_BAD = (ValueError, LookupError, TypeError, AttributeError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)
"""Lists the errors that a damaged file may raise when it is read."""
Role = Literal["input", "output"]


@dataclass(frozen=True)
class About:
    """Describes the origin of the values. `sha256` is the model file's, or "" without a file. `versions` are the
    versions of packages."""

    model: str
    sha256: str
    runtime: str
    provider: str
    seed: int
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """Describes one value. `kind` is `tensor`, `list` or `absent`. A list is a sequence, or has one array for each
    iteration of a loop, whose bodies `path` names. `dtypes` and `keys` have one element for each array; `keys` are the
    arrays' names in the file."""

    name: str
    kind: Literal["tensor", "list", "absent"]
    dtypes: tuple[str, ...]
    keys: tuple[str, ...]
    path: tuple[str, ...] = ()


class Store(Protocol):
    """Reads the arrays of a file by key."""

    def array(self, key: str) -> Array: ...


class Bundle:
    """Holds an open bundle: `entries` by name, in the order of writing. A value is read when it is asked for."""

    def __init__(
        self,
        about: About,
        entries: Mapping[str, Entry],
        ports: Mapping[Role, tuple[str, ...]],
        store: Store,
        where: str,
    ) -> None:
        self.about, self.entries, self._ports, self._store, self._where = about, entries, ports, store, where

    def named(self, role: Role) -> tuple[str, ...]:
        """Returns the names of the inputs, or of the outputs, in the model's order. Each name is an entry."""
        return self._ports[role]

    def value(self, name: str) -> Value:
        """Returns the value of that name: an array, a list of arrays, or None.

        Raises:
            OnnxsmithError: `bundle/unknown-name`; `bundle/unreadable` if its bytes do not form the array.
        """
        if name not in self.entries:
            raise problem(
                "bundle/unknown-name",
                f"the bundle does not contain {name!r}",
                where=self._where,
                fix=f"it has: {', '.join(near(name, list(self.entries)) or list(self.entries)[:5])}",
            )
        entry = self.entries[name]
        try:
            found = [
                _restored(self._store.array(key), dtype) for key, dtype in zip(entry.keys, entry.dtypes, strict=True)
            ]
        except OnnxsmithError:
            raise
        except Exception as error:
            raise _unreadable(self._where, f"{name}: {type(error).__name__}: {error}") from error
        if entry.kind == "list":
            return found
        return found[0] if entry.kind == "tensor" else None


class Writer:
    """Writes a bundle, one value after the other; a context manager. The file is at `path` only after `finish`.

    Raises:
        OnnxsmithError: `save/no-folder`, `bundle/suffix`, or `save/failed` if the disk refuses.
    """

    def __init__(self, path: Path) -> None:
        check_target(path)
        self._path = path
        self._entries: dict[str, Entry] = {}
        self._keys = {_npz.ABOUT, "__metadata__"}
        self._stack = contextlib.ExitStack()
        with _disk(path), contextlib.ExitStack() as stack:
            self._made = folders.OwnPath(stack.enter_context(folders.aside(path)) / path.name)
            make = _npz.Writer if path.suffix == ".npz" else _safetensors.Writer
            self._file: _npz.Writer | _safetensors.Writer = make(self._made)
            stack.callback(self._file.close)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with _disk(self._path):  # closing writes buffered data, which may fail like any write
            self._stack.close()

    def add(self, name: str, value: Value, path: tuple[str, ...] = ()) -> None:
        """Adds a value. Each name may be added once."""
        assert name not in self._entries, name
        listed = isinstance(value, list)
        arrays = value if isinstance(value, list) else [] if value is None else [value]
        dtypes, keys = [], []
        for index, array in enumerate(arrays):
            dtype = "string" if array.dtype.kind in "OUS" else name_of(array.dtype)
            wish = f"{name}[{index}]" if listed else name
            key = free_key(member(wish) if isinstance(self._file, _npz.Writer) else wish, self._keys)
            with _disk(self._path):
                self._file.add(key, _plain(array, dtype))
            dtypes.append(dtype)
            keys.append(key)
        kind: Literal["tensor", "list", "absent"] = "list" if listed else "absent" if value is None else "tensor"
        self._entries[name] = Entry(name, kind, tuple(dtypes), tuple(keys), path)

    def finish(self, about: About, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Moves the file to `path`. `inputs` and `outputs` are names of added values, in the model's order."""
        ports = {"input": list(inputs), "output": list(outputs)}
        assert all(name in self._entries for names in ports.values() for name in names)
        entries = [asdict(entry) for entry in self._entries.values()]
        with _disk(self._path):
            text = {"format": FORMAT, "about": asdict(about), "ports": ports, "entries": entries}
            self._file.finish(json.dumps(text))
            folders.place(self._made, self._path)


def check_target(path: Path) -> None:
    """Checks the path of a file to write, before anything is computed.

    Raises:
        OnnxsmithError: `save/no-folder`, `save/not-a-file`, `bundle/suffix`.
    """
    devices.refuse(path)
    refuse_missing(path.absolute().parent)
    if not is_bundle(path) or path.is_dir():
        raise problem(
            "bundle/suffix",
            "values are written as .safetensors or .npz",
            where=str(path),
            fix=f"-o {pasted(path.with_suffix('.safetensors'))}",
        )


@contextlib.contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritten(path, error, "the values could not be written") from error


def is_bundle(path: Path) -> bool:
    """Whether the file has the suffix of a bundle."""
    return path.suffix in SUFFIXES


def read(path: Path) -> Bundle:
    """Opens the bundle in a file.

    Raises:
        OnnxsmithError: `bundle/unreadable` if the file is no bundle, or is damaged.
    """
    try:
        store = (_npz.Reader if path.suffix == ".npz" else _safetensors.Reader)(path)
        text = user_files.parse_json(store.about())
        if text["format"] != FORMAT:
            raise ValueError(f"format {text['format']}, this version reads {FORMAT}")
        about = About(**{name: text["about"][name] for name in About.__dataclass_fields__})
        entries = {item["name"]: _entry(item, store.keys) for item in text["entries"]}
        inputs, outputs = (tuple(text["ports"][role]) for role in ("input", "output"))
        if not {*inputs, *outputs} <= entries.keys():
            raise ValueError("an input or an output is missing")
        return Bundle(about, entries, {"input": inputs, "output": outputs}, store, str(path))
    except (*_BAD, OSError) as error:
        raise _unreadable(str(path), f"{type(error).__name__}: {error}") from error


def _entry(item: dict[str, Any], known: set[str]) -> Entry:
    entry = Entry(
        str(item["name"]),
        item["kind"],
        tuple(item["dtypes"]),
        tuple(item["keys"]),
        tuple(item["path"]),
    )
    number = {"tensor": 1, "absent": 0, "list": len(entry.keys)}[entry.kind]
    if not len(entry.keys) == len(entry.dtypes) == number or not set(entry.keys) <= known:
        raise ValueError(f"the arrays of {entry.name!r} are missing")
    return entry


def _plain(array: Array, dtype: str) -> Array:
    """Returns the array in a dtype that the file formats have."""
    if dtype == "string":
        texts = [
            text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else str(text) for text in array.ravel()
        ]
        return np.frombuffer(json.dumps({"shape": array.shape, "texts": texts}).encode(), np.uint8)
    if dtype.startswith("complex"):
        return np.stack([array.real, array.imag], axis=-1)
    return np.asarray(array, order="C")


def _restored(array: Array, dtype: str) -> Array:
    if dtype == "string":
        held = user_files.parse_json(array.tobytes().decode())
        texts = np.empty(len(held["texts"]), object)
        texts[:] = held["texts"]
        return texts.reshape(held["shape"])
    wanted = numpy_dtype(dtype)
    if dtype.startswith("complex"):
        return (array[..., 0] + 1j * array[..., 1]).astype(wanted)
    if array.dtype == wanted:
        return array
    if array.dtype.kind not in "iu" or array.dtype.itemsize != wanted.itemsize:
        raise ValueError(f"{array.dtype} where the bits of {dtype} should be")
    return array.view(wanted)


def _unreadable(where: str, why: str) -> OnnxsmithError:
    return problem(
        "bundle/unreadable",
        "the file is not a bundle of values, or is damaged",
        where=where,
        why=why,
        fix=f"write it again: `onnxsmith dump MODEL -o {pasted(where)}`",
    )
