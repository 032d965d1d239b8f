"""Recognises the layout of a folder of graphs by its files. `LAYOUTS` has one entry for each layout."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, pasted

ENCODER, DECODER, FIRST, LATER, MERGED = "encoder", "decoder", "first call", "later calls", "merged"
"""Roles of files. A `decoder` makes all calls. A `merged` file has a switch for the first call and for later calls."""
CONFIG, GENAI, PIPELINE = "config.json", "genai_config.json", "model_index.json"
_VARIANTS = ("fp32", "fp16", "bf16", "int8", "uint8", "quantized", "q8", "q4", "q4f16", "bnb4")
"""The endings of file names in the layout of transformers.js, which name the precision."""


@dataclass(frozen=True)
class GraphFolder:
    """A folder of graphs. `files` are its graphs by role. `parts` are graphs that are compared by themselves, by their
    folder. `names` map the names of this layout's configuration to the names in the graph. `unread` are files of other
    precisions."""

    path: Path
    layout: str
    files: Mapping[str, Path] = field(default_factory=dict)
    parts: Mapping[str, Path] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Returns the folder's name."""
        return self.path.resolve().name


@dataclass(frozen=True)
class Layout:
    """A layout, the files by which it is recognised, and the function that reads it. The function returns None if the
    folder has another layout."""

    name: str
    expected: str
    read: Callable[[Path], GraphFolder | None]


def is_folder(value: Any) -> bool:
    """Whether a side of a comparison is a folder of graphs or of a model."""
    return isinstance(value, str | Path) and Path(value).is_dir()


def of_file(file: Path) -> GraphFolder:
    """Returns one graph as a folder, without the files beside it."""
    return GraphFolder(file, "one file", {DECODER: file})


def is_of_graphs(path: Path) -> bool:
    """Whether the folder of an original has graphs, and no weights of transformers. A folder with both is the original
    of its own graphs."""
    return (any(path.glob("*.onnx")) or any(path.glob("*/*.onnx"))) and not has_weights(path)


def has_weights(path: Path) -> bool:
    """Whether the folder has weights that transformers reads."""
    return any(path.glob("*.safetensors")) or any(path.glob("pytorch_model*.bin"))


def read(path: Path) -> GraphFolder:
    """Returns the folder of graphs.

    Raises:
        OnnxsmithError: `compare/folder-layout` if the layout is not known; `compare/folder-part` if a file is missing;
            `compare/folder-config` if a configuration is damaged.
    """
    for layout in LAYOUTS:
        found = layout.read(path)
        if found is not None:
            return found
    files = sorted(one.relative_to(path).as_posix() for one in path.glob("**/*.onnx"))
    raise problem(
        "compare/folder-layout",
        "the folder has no layout that is known" if files else "there is no ONNX file in the folder",
        where=str(path),
        why=(f"it has {first_few(files, 5)}; " if files else "")
        + "expected is one of: "
        + "; ".join(f"{one.expected} ({one.name})" for one in LAYOUTS),
        fix=f"compare one file: `onnxsmith compare REFERENCE {pasted(path / files[0])}`"
        if files
        else "give the original first, and then the folder that has the .onnx files"
        if has_weights(path)
        else "give the folder that has the .onnx files",
    )


def settings(file: Path) -> dict[str, Any]:
    """Returns the content of a JSON file; empty if the file does not exist.

    Raises:
        OnnxsmithError: `compare/folder-config` if the file is damaged.
    """
    if not file.exists():
        return {}
    try:
        found = user_files.parse_json(user_files.read_utf8(file))
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
    except (OSError, ValueError) as error:
        line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise problem(
            "compare/folder-config",
            f"{file.name} cannot be read",
            where=str(file),
            why=f"{error}{line}" if not line else f"it is not JSON{line}",
            fix=f"take {file.name} from the original once more, or write the folder again",
        ) from error
    return found


def _genai(path: Path) -> GraphFolder | None:
    if not (path / GENAI).exists():
        return None
    model = _table(settings(path / GENAI), "model", path)
    decoder = _table(model, "decoder", path)
    file = path / str(decoder.get("filename", "model.onnx"))
    if not file.is_file():
        raise missing(path, [file.name], f"{GENAI} names it")
    if "encoder" in model or "vision" in model or "speech" in model:
        raise problem(
            "compare/folder-layout",
            "onnxruntime-genai folders of several graphs are not compared as a whole",
            where=str(path / GENAI),
            why="the decoder reads what a graph for images, sounds or texts computes, with names of its own",
            fix=f"compare one file with another: `onnxsmith compare REFERENCE {pasted(file)}`",
        )
    return GraphFolder(path, "onnxruntime-genai", {DECODER: file}, names=_genai_names(decoder))


def _genai_names(decoder: Mapping[str, Any]) -> dict[str, str]:
    """Maps the usual names of ports to those that genai_config.json gives."""
    found: dict[str, str] = {}
    for ports, patterns in (
        ("inputs", {"past_key_names": "past_key_values.{}.key", "past_value_names": "past_key_values.{}.value"}),
        ("outputs", {"present_key_names": "present.{}.key", "present_value_names": "present.{}.value"}),
    ):
        given = decoder.get(ports)
        for name, own in (given if isinstance(given, dict) else {}).items():
            if name in patterns and isinstance(own, str) and "%d" in own:
                layers = decoder.get("num_hidden_layers", 0)
                found |= {patterns[name].format(at): own.replace("%d", str(at)) for at in range(int(layers))}
            elif isinstance(own, str):
                found[name] = own
    return found


def _table(held: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    found = held.get(name)
    if not isinstance(found, dict):
        raise problem(
            "compare/folder-config",
            f"{GENAI} has no table {name!r}",
            where=str(path / GENAI),
            why="it names the graph and its inputs and outputs",
            fix=f"write the folder again: `onnxsmith bundle model.onnx -o {pasted(path)} --for genai` with a model, "
            "or with the model builder of onnxruntime-genai",
        )
    return found


def _pipeline(path: Path) -> GraphFolder | None:
    """Reads a pipeline of diffusers: each part is a graph in a folder of its own."""
    if not (path / PIPELINE).exists():
        return None
    listed = settings(path / PIPELINE)
    named = [name for name, kind in listed.items() if isinstance(kind, list) and kind[:1] != [None]]
    found = {one.parent.name: one for one in sorted(path.glob("*/model.onnx"))}
    if not found:
        raise missing(path, [f"{name}/model.onnx" for name in named] or ["unet/model.onnx"], f"{PIPELINE} lists them")
    return GraphFolder(path, "diffusers", parts=found)


def _decoders(path: Path) -> GraphFolder | None:
    """Reads the layout of optimum, with or without an encoder; transformers.js has the same files in `onnx`."""
    base, layout = _base(path)
    of = {
        ENCODER: _variant(base, "encoder_model"),
        MERGED: _variant(base, "decoder_model_merged"),
        FIRST: _variant(base, "decoder_model"),
        LATER: _variant(base, "decoder_with_past_model"),
    }
    files = {role: file for role, file in of.items() if file is not None}
    if not files:
        return None
    if not {FIRST, MERGED} & files.keys():
        raise missing(path, ["decoder_model.onnx", "decoder_model_merged.onnx"], f"{first_few(_names(files), 3)} is of "
                      "a model with a decoder", one_of=True)  # fmt: skip
    if LATER in files and FIRST not in files:
        raise missing(path, ["decoder_model.onnx"], "decoder_with_past_model.onnx only makes the later calls")
    return GraphFolder(path, layout, files, unread=_unread(base, files))


def _names(files: Mapping[str, Path]) -> list[str]:
    return [file.name for file in files.values()]


def _single(path: Path) -> GraphFolder | None:
    """Reads a folder with one graph and the configuration of its model."""
    base, layout = _base(path)
    file = _variant(base, "model")
    if file is None:
        every = sorted(base.glob("*.onnx"))
        file = every[0] if len(every) == 1 else None
    if file is None:
        return None
    return GraphFolder(
        path, layout if layout != "optimum" else "one graph", {DECODER: file}, unread=_unread(base, {DECODER: file})
    )


def _base(path: Path) -> tuple[Path, str]:
    inner = path / "onnx"
    if inner.is_dir() and any(inner.glob("*.onnx")) and not any(path.glob("*.onnx")):
        return inner, "transformers.js"
    return path, "optimum"


def _variant(base: Path, name: str) -> Path | None:
    """Returns the graph of this name; without one, the only graph of this name in another precision."""
    if (base / f"{name}.onnx").is_file():
        return base / f"{name}.onnx"
    found = [file for ending in _VARIANTS if (file := base / f"{name}_{ending}.onnx").is_file()]
    return found[0] if len(found) == 1 else None


def _unread(base: Path, files: Mapping[str, Path]) -> tuple[str, ...]:
    return tuple(sorted(one.name for one in base.glob("*.onnx") if one not in files.values()))


def missing(path: Path, names: list[str], why: str, *, one_of: bool = False) -> OnnxsmithError:
    """Returns the error that files are missing."""
    listed = (" or " if one_of else ", ").join(names)
    return problem(
        "compare/folder-part",
        f"the folder lacks {listed}",
        where=str(path),
        why=why,
        fix=f"copy {listed} into {path}, or write the folder again",
    )


LAYOUTS = (
    Layout("onnxruntime-genai", "genai_config.json and the graph that it names", _genai),
    Layout("diffusers", "model_index.json and unet/model.onnx, …", _pipeline),
    Layout("optimum or transformers.js", "decoder_model.onnx with decoder_with_past_model.onnx, or "
           "decoder_model_merged.onnx, with encoder_model.onnx for a model with an encoder, also in onnx/", _decoders),
    Layout("one graph", "model.onnx and config.json, also onnx/model.onnx", _single),
)  # fmt: skip
"""Lists the layouts, those with a file of their own first."""
