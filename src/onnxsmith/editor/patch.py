"""Reads and writes patch files: the steps of an edit as TOML, with small arrays in the text and large ones beside it.

A file is a list of steps. `do` names the step, the other keys are its fields:

    [[step]]
    do = "rename"
    tensor = "onnx::Conv_12"
    to = "features"

A file of replacements has `[[replace]]` tables instead, which are steps of that name without `do`:

    [[replace]]
    find = "Neg(Neg(x))"
    by = "x"
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import tomli_w

from onnxsmith.base import devices, folders, rooms, user_files
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import problem
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import pasted
from onnxsmith.editor import field_types
from onnxsmith.editor.handles import NodeHandle, TensorHandle
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.files import array_files
from onnxsmith.graph.files.load import load, near_files
from onnxsmith.graph.files.save import disk_problems
from onnxsmith.graph.operators import constant_tensors
from onnxsmith.graph.structure import walk


def kinds() -> dict[str, type[Step]]:
    """Returns the steps by name, in Python's spelling: `drop_input`."""
    return {name.replace("-", "_"): kind for name, kind in rooms.classes("onnxsmith.editor.steps", Step).items()}


def described() -> Iterator[tuple[str, str, str]]:
    """Yields the name, the fields and the description of each step."""
    for name, kind in kinds().items():
        fields = [
            field.name.rstrip("_") + ("" if field.default is dataclasses.MISSING is field.default_factory else "?")
            for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        ]
        yield name.replace("_", "-"), ", ".join(fields), " ".join((kind.__doc__ or "").split())


_OTHER_WORDS = {
    "add": "insert", "append": "insert", "change": "set", "convert": "opset", "cut": "extract", "delete": "remove",
    "drop": "remove", "erase": "remove", "mark_output": "expose", "modify": "set", "move": "wire", "reconnect": "wire",
    "rewire": "wire", "substitute": "replace", "swap": "replace", "transpose": "layout", "update": "set",
}  # fmt: skip
"""Maps words of other tools, and of people, to the step that is meant."""


def make(name: str, given: tuple[Any, ...], fields: Mapping[str, Any], where: str) -> Step:
    """Makes a step from its arguments.

    Raises:
        OnnxsmithError: `edit/unknown-step`, `edit/step-argument`.
    """
    known = kinds()
    kind = known.get(name.replace("-", "_"))
    if kind is None:
        plain = name.replace("-", "_")
        near = [_OTHER_WORDS[plain]] if plain in _OTHER_WORDS else near_names(plain, known, 1, 0.6)
        written = [one.replace("_", "-") if ", step " in where else one for one in (*near, *known)]
        raise problem(
            "edit/unknown-step",
            f"there is no step {name!r}",
            where=where,
            why=f"the steps are {', '.join(written[len(near) :])}",
            fix=f"write {written[0]!r}" if near else "`onnxsmith edit` lists the steps",
        )
    allowed = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    named = {key.replace("-", "_") + ("_" if key in ("from", "in") else ""): value for key, value in fields.items()}
    if len(given) > len(kind.first):
        raise _argument(
            name,
            f"{name} takes at most {len(kind.first)} arguments without a name",
            allowed,
            where,
            f"name the others: {', '.join(f'{one.rstrip(chr(95))}=…' for one in list(allowed)[len(kind.first) :])}",
        )
    for field, value in zip(kind.first, given, strict=False):
        if field in named:
            raise _argument(name, f"{name} was given {field} twice", allowed, where, f"leave {field}= out")
        named[field] = value
    for key in named:
        if key not in allowed:
            near = near_names(key, allowed, 1, 0.6)  # a wrong guess misleads: new is not node
            lacks = [one for one, field in allowed.items() if one not in named and _is_needed(field)]
            meant = near or lacks or [one for one in allowed if one not in named]
            field = key.rstrip("_")
            fix = f"write {' or '.join(one.rstrip('_') for one in meant)} in place of {field}"
            fix = fix if meant else f"leave {field} out"
            raise _argument(name, f"{name} has no field {field}", allowed, where, fix)
    missing = [one.rstrip("_") for one, field in allowed.items() if one not in named and _is_needed(field)]
    if missing:
        fix = f"add {', '.join(f'{one} = …' for one in missing)}; `onnxsmith edit` says what it is"
        raise _argument(name, f"{name} needs {', '.join(missing)}", allowed, where, fix)
    for key, value in named.items():
        if wanted := field_types.expected(kind, key, value):
            field = key.rstrip("_")
            what = f"{field} of {name} is {wanted}, not {str(value)[:60]!r}"
            raise _argument(name, what, allowed, where, f"correct {field}; `onnxsmith edit` says what it is")
    return kind(**named)


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING is field.default_factory


def _argument(name: str, what: str, allowed: Mapping[str, Any], where: str, fix: str) -> Exception:
    fields = ", ".join(field.rstrip("_") for field in allowed)
    return problem(
        "edit/step-argument",
        what,
        where=where,
        why=f"the fields of {name} are {fields}",
        fix=fix,
    )


def read(path: str | Path) -> list[Step]:
    """Returns the steps of a patch file.

    Raises:
        OnnxsmithError: `edit/patch-file` if the file cannot be read, `edit/unknown-step`, `edit/step-argument`.
    """
    file = Path(path)
    try:
        content = user_files.parse_toml(user_files.read_utf8(file))
    except OSError as error:
        raise problem(
            "edit/patch-file",
            "the patch file cannot be read",
            where=str(file),
            why=error.strerror or str(error),
            fix=near_files(file) or f"check the path; relative paths start at {Path.cwd()}",
        ) from error
    except ValueError as error:
        raise problem(
            "edit/patch-file", "the patch file is not TOML", where=str(file), why=str(error), fix=_EXAMPLE
        ) from error
    kind = "replace" if "replace" in content else "step"
    steps = content.get(kind)
    if set(content) != {kind} or not isinstance(steps, list) or not all(isinstance(one, dict) for one in steps):
        raise problem(
            "edit/patch-file",
            "a patch file has only [[step]] tables or [[replace]] tables",
            where=str(file),
            why=f"its keys are {', '.join(content) or 'none'}",
            fix=_EXAMPLE,
        )
    shorthand = {"do": "replace"} if kind == "replace" else {}
    return [_step(shorthand | one, f"{file}, {kind} {number}", file.parent) for number, one in enumerate(steps, 1)]


_EXAMPLE = 'write:\n[[step]]\ndo = "rename"\ntensor = "x"\nto = "image"'


def _step(table: dict[str, Any], where: str, folder: Path) -> Step:
    if not isinstance(table.get("do"), str):
        raise problem("edit/patch-file", "a step has no `do`", where=where, fix=_EXAMPLE)
    fields = {key: loaded(value, folder) for key, value in table.items() if key != "do"}
    return make(table["do"], (), fields, where)


def text(steps: Iterable[Mapping[str, Any]]) -> str:
    """Returns the text of a patch file that repeats the steps. The steps are tables made by `table`."""
    return tomli_w.dumps({"step": list(steps)})


def table(name: str, step: Step, arrays: Arrays) -> dict[str, Any]:
    """Returns a step as a table of a patch file. The function must be called before the step is applied, because
    handles are recorded by their names. `arrays` collects the arrays that are too large for the text.

    Raises:
        OnnxsmithError: `edit/not-recorded` for an argument that text cannot express.
    """
    fields = {field.name: (getattr(step, field.name), field) for field in dataclasses.fields(step)}  # type: ignore[arg-type]
    said = {
        key.rstrip("_"): _plain(value, f"{name}_{key}".rstrip("_"), arrays)
        for key, (value, field) in fields.items()
        if value is not None and not _is_default(value, field)
    }
    return {"do": name.replace("_", "-"), **said}


def _is_default(value: Any, field: dataclasses.Field[Any]) -> bool:
    default = field.default
    if default is dataclasses.MISSING:
        return field.default_factory is not dataclasses.MISSING and not value
    return type(value) is type(default) and not isinstance(value, np.ndarray) and bool(value == default)


def _plain(value: Any, where: str, arrays: Arrays) -> Any:
    if isinstance(value, TensorHandle):
        return value.name
    if isinstance(value, NodeHandle):
        return value.name or {"gives": walk.node_label(value.node).removeprefix("-> ")}
    array = plain_array(value)
    if array is not None:
        return arrays.said(array, where)
    if isinstance(value, Mapping):
        return {str(key): _plain(one, where, arrays) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return ["" if one is None else _plain(one, where, arrays) for one in value]
    if isinstance(value, str | bool | int | float):
        return value
    raise problem(
        "edit/not-recorded",
        f"a patch file cannot express {value!r}",
        where=where,
        why="it can have only texts, numbers and arrays",
        fix="edit without write_patch=",
    )


_LARGEST = 256
"""Limits the elements of an array in the text of a patch file. A choice: a file that a person can review."""


def loaded(value: Any, folder: Path | None = None) -> Any:
    """Turns `{ file = "bias.npy" }`, `{ file = "model.onnx", tensor = "bias" }` and
    `{ array = [1, 2], dtype = "float32" }` into arrays, also inside lists and tables. For a dtype that numpy lacks, the
    table has the key `dtype` beside `file`. Files of a patch lie in its `folder` or below: a patch may come from
    somebody else. Without a folder, the values are the caller's own, and relative paths start at the current folder.

    Raises:
        OnnxsmithError: `edit/patch-file` if a file cannot be read; `edit/outside` if it is not in the folder.
    """
    if isinstance(value, dict) and set(value) in ({"file"}, {"file", "dtype"}) and isinstance(value["file"], str):
        array = _from_file(_inside(value["file"], folder))
        return array.view(_dtype(value["dtype"])) if "dtype" in value else array
    if (
        isinstance(value, dict)
        and set(value) == {"file", "tensor"}
        and all(isinstance(one, str) for one in value.values())
    ):
        return _of_model(_inside(value["file"], folder), value["tensor"])
    if isinstance(value, dict) and set(value) == {"array", "dtype"}:
        return np.array(value["array"], _dtype(value["dtype"]))
    if isinstance(value, dict):
        return {key: loaded(one, folder) for key, one in value.items()}
    if isinstance(value, list):
        return [loaded(one, folder) for one in value]
    return value


def _inside(file: str, folder: Path | None) -> Path:
    path = Path(file)
    if folder is None:
        return path
    if path.is_absolute() or path.drive or ".." in path.parts:
        there = folder / path
        copy = f"cp {pasted(there)} {pasted(folder)}"
        raise problem(
            "edit/outside",
            "a patch reads a file outside of its folder",
            where=file,
            why="a patch that somebody else wrote could read any file of this user",
            fix=f"copy the file beside the patch, `{copy}`, and write file = {path.name!r}",
        )
    return folder / path


def _from_file(path: Path) -> np.ndarray[Any, Any]:
    why = "it is no .npy file"
    try:
        file = array_files.ArrayFile(path)
        if file.names == [""]:
            return file.array("")
    except (*array_files.DAMAGED, OSError) as error:
        why = str(error)
    raise problem(
        "edit/patch-file",
        "an array cannot be read",
        where=str(path),
        why=why,
        fix=f"write it with numpy.save({str(path)!r}, array)",
    )


def _of_model(path: Path, name: str) -> np.ndarray[Any, Any]:
    """Returns the constant of this name in another model file."""
    graph = load(path).graph
    made = (value for node in graph for value in node.outputs)
    known = {value.name or "": held for value in (*graph.initializers.values(), *made) if (held := const_tensor(value))}
    if name not in known:
        near = near_names(name, known, 1, 0.6)
        raise problem(
            "edit/patch-file",
            f"the model has no constant {name!r}",
            where=str(path),
            fix=f"write tensor = {near[0]!r}"
            if near
            else f"`onnxsmith inspect {pasted(path)} --tensors` lists the constants",
        )
    return np.asarray(known[name].numpy())


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        return ir.DataType[name.upper()].numpy()


@dataclass
class Arrays:
    """Collects the arrays of a patch file that is being recorded. `files` maps file names to the large arrays."""

    stem: str
    files: dict[str, np.ndarray[Any, Any]] = dataclasses.field(default_factory=dict)

    def said(self, array: np.ndarray[Any, Any], where: str) -> Mapping[str, Any]:
        """Returns the table by which the patch file names an array. `where` becomes a part of its file's name.

        Raises:
            OnnxsmithError: `edit/not-recorded` for an array of objects other than texts.
        """
        texts = array.dtype.kind in "OSU"
        if texts and not all(isinstance(one, str) for one in array.ravel().tolist()):
            raise problem(
                "edit/not-recorded",
                f"a patch file cannot express an array of {array.dtype.name}",
                where=where,
                why="it can have only texts and numbers",
                fix="give an array of numbers or of texts, or edit without write_patch=",
            )
        if array.size <= _LARGEST:
            return {"array": array.tolist(), "dtype": "object" if texts else array.dtype.name}
        name = f"{self.stem}.{where}.npy"
        number = 1
        while name in self.files:
            number += 1
            name = f"{self.stem}.{where}_{number}.npy"
        self.files[name] = array.astype(str) if texts else _in_numpy(array).copy()
        return {"file": name, "dtype": array.dtype.name} if array.dtype.kind == "V" else {"file": name}


def _in_numpy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the array, or its bits if numpy itself lacks the dtype: bfloat16, float8."""
    return array.view(np.dtype(f"u{array.dtype.itemsize}")) if array.dtype.kind == "V" else array


def plain_array(value: Any) -> np.ndarray[Any, Any] | None:
    """Returns the numpy array of an array, a numpy scalar or a tensor; None for any other value."""
    if isinstance(value, ir.TensorProtocol):
        return value.numpy()
    return np.asarray(value) if constant_tensors.is_array(value) or isinstance(value, np.generic) else None


@contextmanager
def together(patch: Path, text: str, files: Mapping[str, np.ndarray[Any, Any]]) -> Iterator[Callable[[], None]]:
    """Writes a patch file and its arrays into a hidden folder. Yields a function that moves them into place.

    Raises:
        OnnxsmithError: `save/…` if the folder does not exist or cannot be written to; `edit/not-recorded` for large
            arrays beside a pipe.
    """
    devices.refuse(patch)
    if files and devices.is_stream(patch):
        raise problem(
            "edit/not-recorded",
            "a patch with large arrays needs a folder",
            where=str(patch),
            why=f"the arrays lie beside it: {', '.join(files)}",
            fix="write the patch to a file: patch.toml",
        )
    real = Path(os.path.realpath(patch))
    refuse_missing(patch.absolute().parent if devices.is_stream(patch) else real.parent)
    with disk_problems(patch), folders.aside(patch) as folder:
        for name, array in files.items():
            np.save(folder / name, array, allow_pickle=False)
        (folder / real.name).write_text(text, encoding="utf-8")

        def place() -> None:
            for name in files:  # before the patch, so that it finds them
                folders.place(folder / name, real.parent / name)
            folders.place(folder / real.name, patch)

        yield place
