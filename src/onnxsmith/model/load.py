"""Reads a model, and refuses what is not one.

Weights in external data stay on disk, memory-mapped, until somebody asks for their values. What a reader could trip
over later is found here: a file that is empty, cut off, or something else altogether; a version newer than this reader;
a graph whose names do not add up; external data that is missing, too short, or outside the model's folder.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from onnxsmith.model import external, guess, structure
from onnxsmith.problem import problem

PROTOBUF_LIMIT = 2**31 - 1
"""Protocol buffers address one message with 32-bit signed sizes; a larger model keeps its weights in external data."""

TEXT_SUFFIXES = {".onnxtxt"}

Source = str | Path | onnx.ModelProto | ir.Model


def load(source: Source) -> ir.Model:
    """The model at a path, from a `ModelProto`, or the same `ir.Model` again.

    A path that ends in `.onnxtxt` is read as ONNX text. External data is looked for beside the file only.

    Raises:
        OnnxsmithError: one of the `model/…` problems, saying what is wrong with the file and where.
    """
    if isinstance(source, ir.Model):
        return source
    if isinstance(source, onnx.ModelProto):
        return from_proto(source, where="the given ModelProto")
    path = Path(source)
    proto = _parse(path)
    external.check(proto, path)
    model = from_proto(proto, where=str(path))
    ir.external_data.set_base_dir(model.graph, path.absolute().parent)
    return model


def from_proto(proto: onnx.ModelProto, *, where: str) -> ir.Model:
    """An `ir.Model` from a parsed message, after its versions and structure were checked."""
    _check_versions(proto, where)
    structure.check(proto, where)
    try:
        return ir.from_proto(proto)
    except Exception as error:
        raise problem(
            "model/invalid",
            "the model could not be read into a graph",
            where=where,
            why=_root_cause(error),
            fix="export the model again; if it loads elsewhere, this is a bug worth reporting",
        ) from error


def _parse(path: Path) -> onnx.ModelProto:
    if not path.exists():
        raise problem(
            "model/not-found",
            "there is no such file",
            where=str(path),
            fix="check the path; relative paths start at the current folder",
        )
    if not path.is_file():
        raise problem(
            "model/not-a-file",
            "this is not a file",
            where=str(path),
            fix="give the path of the .onnx file itself",
        )
    size = path.stat().st_size
    if size == 0:
        raise problem(
            "model/empty",
            "the file is empty",
            where=str(path),
            why="a write that was interrupted, or a download that failed, leaves such a file",
            fix="export or download it again",
        )
    if size > PROTOBUF_LIMIT:
        raise problem(
            "model/too-large",
            f"the file has {size:,} bytes; one protocol buffer message ends at {PROTOBUF_LIMIT:,}",
            where=str(path),
            why="weights over 2 GB have to be in external data",
            fix="export again with the weights in external data",
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise problem("model/unreadable", "the file cannot be read", where=str(path), why=str(error)) from error
    if path.suffix in TEXT_SUFFIXES:
        return _parse_text(data, path)
    try:
        proto = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise guess.not_a_model(data, path) from error
    if not proto.HasField("graph"):
        raise guess.not_a_model(data, path)
    return proto


def _parse_text(data: bytes, path: Path) -> onnx.ModelProto:
    try:
        return onnx.parser.parse_model(data.decode())
    except (onnx.parser.ParseError, UnicodeDecodeError) as error:
        raise problem(
            "model/text-syntax",
            "the ONNX text does not parse",
            where=str(path),
            why=str(error).strip(),
            fix="see `onnxsmith inspect MODEL --text` for the notation",
        ) from error


def _check_versions(proto: onnx.ModelProto, where: str) -> None:
    if proto.ir_version > onnx.IR_VERSION:
        raise problem(
            "model/ir-too-new",
            f"the file has IR version {proto.ir_version}; the installed onnx {onnx.__version__} reads up to {onnx.IR_VERSION}",
            where=where,
            fix="pip install --upgrade onnx, or write the file again with an older IR version",
        )
    newest = onnx.defs.onnx_opset_version()
    for imported in proto.opset_import:
        if imported.domain in ("", "ai.onnx") and imported.version > newest:
            raise problem(
                "model/opset-too-new",
                f"the file uses opset {imported.version}; the installed onnx {onnx.__version__} knows up to {newest}",
                where=where,
                fix="pip install --upgrade onnx, or export again at an older opset",
            )
    if not proto.opset_import and not proto.functions and proto.ir_version >= 3:
        raise problem(
            "model/no-opset",
            "the file does not say which operator set it uses",
            where=where,
            why="since IR version 3 a model must import at least one operator set",
            fix="export the model again",
        )


def _root_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"
