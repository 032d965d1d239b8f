"""Reads a model, and refuses files that are not valid models.

External data stays on disk, memory-mapped, until its values are read. Refused here: a file that is empty, truncated or
not a model; a version newer than the installed onnx; a graph with undefined or duplicate names; external data that is
missing, too short, or outside the model's folder.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import re
from collections import Counter
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted, pasted_words
from onnxsmith.graph.files import external, noted, tensor_validation
from onnxsmith.graph.structure import (
    carried_fields,
    function_expansion,
    name_validation,
    node_checks,
    sparse,
    utf8_checks,
)
from onnxsmith.graph.structure.file_change import message_change

PROTOBUF_LIMIT = 2**31 - 1
"""Limits the bytes of a protocol buffer message, whose size is a signed 32-bit number. A larger model needs external
data."""

TEXT_SUFFIXES = {".onnxtxt"}
_DEEPEST_TEXT = 500
"""Limits the nesting depth of ONNX text that is parsed. A choice: far above real models, far below the depth at which
the stack overflows."""

Source = str | Path | onnx.ModelProto | ir.Model


def load(source: Source) -> ir.Model:
    """Loads a model from a path or a `ModelProto`; returns an `ir.Model` as it is.

    A path that ends in `.onnxtxt` is read as ONNX text. External data must lie in the folder of the file.

    Raises: OnnxsmithError: a `model/…` problem, which says what is wrong with the file and where.
    """
    return _noted(_loaded(source))


def _noted(model: ir.Model) -> ir.Model:
    noted.here().left_out.update(dict.fromkeys(carried_fields.left_out(model)))
    return model


def _loaded(source: Source) -> ir.Model:
    if isinstance(source, ir.Model):
        return source
    if isinstance(source, onnx.ModelProto):
        own = onnx.ModelProto()
        own.CopyFrom(source)  # the graph keeps references to the tensor messages; the caller's must stay untouched
        return from_proto(own, where="the given ModelProto")
    if not isinstance(source, str | os.PathLike):
        raise _no_model(source)
    path = Path(source)
    with no_collection():
        return from_proto(_parse(path), where=str(path), path=path)


def load_sorting(source: Source) -> tuple[ir.Model, bool]:
    """Loads a model as `load` does, and sorts its nodes if they could not run in their order. Some runtimes sort them,
    too. Returns the model, and whether it was sorted.

    Raises:
        OnnxsmithError: as `load`, except `model/unsorted`.
    """
    try:
        return load(source), False
    except OnnxsmithError as error:
        if error.problem.id != "model/unsorted" or isinstance(source, ir.Model):
            raise
    path = None if isinstance(source, onnx.ModelProto) else Path(source)
    proto = source if isinstance(source, onnx.ModelProto) else _parse(Path(source))
    with no_collection():
        model = _noted(external.read(proto, path))
        model.graph.sort()
        where = "the given ModelProto" if path is None else str(path)
        return from_proto(ir.serde.serialize_model(model), where=where, path=path), True


def _no_model(given: object) -> OnnxsmithError:
    kind = type(given)
    is_module = any(f"{one.__module__}.{one.__qualname__}" == "torch.nn.modules.module.Module" for one in kind.__mro__)
    return problem(
        "model/not-given",
        f"{'None' if given is None else f'{kind.__module__}.{kind.__qualname__}'} is no ONNX model",
        why="a model is a path, an onnx.ModelProto or an onnx_ir.Model",
        fix='export the module first: onnxsmith.export(module, args=(example,), output="m.onnx")'
        if is_module
        else 'give the path of a file, such as "m.onnx"',
    )


def load_broken(source: str | Path) -> ir.Model:
    """Loads a file as it is, for callers that run nothing. Does not check whether names are defined, nodes are sorted,
    and external data exists. Undefined values have no producer; tensors of missing files cannot be read.

    Raises:
        OnnxsmithError: `model/…` if the file is not a model, or a tensor in it is damaged.
    """
    path = Path(source)
    log = logging.getLogger("onnx_ir.serde")

    def silent(_record: logging.LogRecord) -> bool:
        """Filters out onnx-ir's log of undefined names, which the caller finds itself. Each call has a filter of its
        own: calls in other threads end at other times."""
        return False

    with no_collection():
        proto, where = _parse(path), str(path)
        _check_versions(proto, where)
        kinds = name_validation.kinds_in(proto)
        node_checks.refuse_long(kinds.longest, where)
        outside = tensor_validation.check(proto, where)
        sparse.check_all(proto, where)
        log.addFilter(silent)
        try:
            return external.read(proto, path, kinds, outside=outside)
        except Exception as error:
            raise _unfit(where, error) from error
        finally:
            log.removeFilter(silent)


def from_proto(proto: onnx.ModelProto, *, where: str, path: Path | None = None) -> ir.Model:
    """Checks a parsed message and makes an `ir.Model` from it.

    The message belongs to the model from then on. `path` is the message's file; external data lies in the same folder.
    """
    try:
        _check_versions(proto, where)
        kinds = name_validation.check(proto, where)
        function_expansion.refuse_endless(proto, where)
        outside = tensor_validation.check(proto, where)
        if kinds.sparse:
            sparse.check_all(proto, where)
        external.check(outside, path, where)
        model = external.read(proto, path, kinds, outside)
        utf8_checks.check_metadata(model, where)
        return model
    except OnnxsmithError:
        raise
    except Exception as error:
        raise _unfit(where, error) from error


def message(source: Path | ir.Model) -> onnx.ModelProto:
    """Returns the message of a file that was checked, or of a model."""
    if isinstance(source, Path):
        return _parse(source)
    made: onnx.ModelProto = carried_fields.to_proto(source)
    return made


def _unfit(where: str, error: Exception) -> OnnxsmithError:
    return problem(
        "model/invalid",
        "the model could not be read into a graph",
        where=where,
        why=_root_cause(error),
        fix="export the model again; if other tools load this file, please report a bug of onnxsmith",
    )


def _parse(path: Path) -> onnx.ModelProto:
    data = _read(path)
    if path.suffix in TEXT_SUFFIXES:
        try:
            return parse_text(data.decode(), where=str(path))
        except UnicodeDecodeError as error:
            raise problem(
                "model/text-syntax",
                "the file is not text",
                where=str(path),
                why=str(error),
                fix=f"if it is a model, rename it: `mv {pasted_words([str(path), str(path.with_suffix('.onnx'))])}`",
            ) from error
    from onnxsmith.graph.files import file_kind

    try:
        proto: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        is_too_deep = file_kind.is_too_deep(error)
        raise (file_kind.too_deep(str(path)) if is_too_deep else file_kind.not_a_model(data, path)) from error
    if not proto.HasField("graph"):
        raise file_kind.not_a_model(data, path)
    return proto


_LIKE = 0.75
"""Sets how much of two file names has to agree. A choice: a common ending (`1.png` and `gone.png`) is too little."""


def near_file(path: Path) -> Path | None:
    """Returns the file of a similar name in the same folder, or the only .onnx file for one; None if there is none."""
    try:
        names = [one.name for one in path.parent.iterdir() if one.is_file()]
    except OSError:
        return None
    if f"{path.name}.onnx" in names:
        return path.with_name(f"{path.name}.onnx")
    alike = [name for name in names if path.suffix == Path(name).suffix == ".onnx"]
    near = near_names(path.name, names, 1, cutoff=_LIKE) or (alike if len(alike) == 1 else ())
    return path.with_name(near[0]) if near else None


def near_files(path: Path) -> str:
    """Returns the advice to take a file of a similar name in the same folder; nothing if there is none."""
    found = near_file(path)
    return f"write {str(found)!r}, which exists" if found is not None else ""


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
    except (FileNotFoundError, NotADirectoryError) as error:
        raise problem(
            "model/not-found",
            "there is no such file",
            where=str(path),
            fix=near_files(path) or f"check the path; relative paths start at {Path.cwd()}",
        ) from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    from onnxsmith.graph.files import file_kind

    if not path.is_file():
        raise file_kind.no_file(path)
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
            f"the file has {size:,} bytes, but a protocol buffer message has at most {PROTOBUF_LIMIT:,}",
            where=str(path),
            why="weights over 2 GB have to be in external data",
            fix="export again: `onnxsmith export` puts the weights into a data file by itself, torch.onnx.export does "
            "with external_data=True, and onnx.save with save_as_external_data=True",
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> OnnxsmithError:
    if isinstance(error, PermissionError):
        fix = f"`chmod u+r {pasted(path)}`, or ask its owner"
    elif isinstance(error, OSError) and error.errno not in (errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP):
        fix = "copy the file to a disk of this machine, and give the path of the copy"
    else:
        fix = f"check the path: no file can have this path{near_files(path) and '; or ' + near_files(path)}"
    return problem("model/unreadable", "the file cannot be read", where=repr(str(path)), why=str(error), fix=fix)


_OF_PARSER = (TypeError, RuntimeError, IndexError, ValueError)
"""Lists what onnx's parser raises besides its own error: for a lone surrogate, and for numbers that it cannot hold."""


def parse_text(text: str, *, where: str) -> onnx.ModelProto:
    """Parses ONNX text into a message, without checking the message.

    Raises:
        OnnxsmithError: `model/text-syntax`.
    """
    if _depth(text) > _DEEPEST_TEXT:  # onnx's parser recurses, and overflows the stack on very deep text
        raise problem(
            "model/text-syntax",
            f"the ONNX text is nested more than {_DEEPEST_TEXT} levels deep",
            where=where,
            fix="check that every bracket is closed; a model with deeper nesting must be an .onnx file",
        )
    try:
        proto: onnx.ModelProto = onnx.parser.parse_model(text)
    except (onnx.parser.ParseError, DecodeError, *_OF_PARSER) as error:
        from onnxsmith.graph.files import file_kind

        if file_kind.is_too_deep(error):
            raise file_kind.too_deep(where) from error
        raise problem(
            "model/text-syntax",
            "the ONNX text does not parse",
            where=where,
            why=_said(error),
            fix="correct it there; `onnxsmith explain model/text-syntax` shows a whole model in the notation",
        ) from error
    return proto


def _said(error: Exception) -> str:
    """Returns the message of onnx's parser, which gives it as bytes."""
    said = error.args[0] if error.args else error
    return (said.decode(errors="replace") if isinstance(said, bytes) else str(said)).strip()


def _depth(text: str) -> int:
    steps = (1 if bracket in "({" else -1 for bracket in re.findall(r"[(){}]", text))
    return max(itertools.accumulate(steps), default=0)


def _check_versions(proto: onnx.ModelProto, where: str) -> None:
    if proto.ir_version > onnx.IR_VERSION:
        raise problem(
            "model/ir-too-new",
            f"the file has IR version {proto.ir_version}",
            where=where,
            why=f"the installed onnx {onnx.__version__} reads up to {onnx.IR_VERSION}",
            fix=f"`pip install --upgrade onnx`; or if the model uses nothing of the newer format, "
            f"{message_change(where, f'm.ir_version = {onnx.IR_VERSION}')}",
        )
    known = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": onnx.defs.onnx_ml_opset_version()}
    for imports in (proto.opset_import, *(function.opset_import for function in proto.functions)):
        versions = {(_domain(imported), imported.version) for imported in imports}
        for domain, version in sorted(versions):
            if not 0 <= version < 2**31:  # onnx reads a version as an int
                raise problem(
                    "model/invalid",
                    f"the file imports version {version} of the operator set {domain or 'ai.onnx'}",
                    where=where,
                    why="versions are positive numbers of at most 31 bits",
                    fix="export the model again",
                )
        for domain, version in sorted(versions):
            if version > known.get(domain, version):
                raise problem(
                    "model/opset-too-new",
                    f"the file uses {domain or 'opset'} {version}",
                    where=where,
                    why=f"the installed onnx {onnx.__version__} knows up to {known[domain]}",
                    fix="`pip install --upgrade onnx`, or export again with "
                    f"{domain or 'opset'} {known[domain]} or older",
                )
        twice = [domain for domain, count in Counter(domain for domain, _ in versions).items() if count > 1]
        if twice:
            raise problem(
                "model/invalid",
                f"the file imports two versions of the operator set {twice[0] or 'ai.onnx'}",
                where=where,
                why="with two versions, the version of a node is undefined",
                fix="export the model again",
            )
    if not proto.opset_import and not proto.functions and proto.ir_version >= 3:
        raise problem(
            "model/no-opset",
            "the file does not say which operator set it uses",
            where=where,
            why="since IR version 3 a model must import at least one operator set",
            fix="export the model again",
        )


def _domain(imported: onnx.OperatorSetIdProto) -> str:
    return "" if imported.domain == "ai.onnx" else imported.domain


def _root_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"
