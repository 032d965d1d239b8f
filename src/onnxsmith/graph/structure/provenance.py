"""Reads and copies the origin of a node: the torch module and the source line that made it.

torch's exporter writes the origin into each node's metadata (`pkg.torch.onnx.*`). This module reads it, and copies it
to replacement nodes, so that a report can name the user's own line after any number of rewrites."""

from __future__ import annotations

import ast
import functools
import os
import re
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith.graph.structure import walk

_SCOPES = "pkg.torch.onnx.name_scopes"
_CLASSES = "pkg.torch.onnx.class_hierarchy"
_TRACE = "pkg.torch.onnx.stack_trace"
_LINE = "pkg.torch.onnx.fx_node"
_NAMESPACE = "namespace"
_PREFIX = "pkg.torch.onnx."
_EXPORTERS = re.compile(rf"pkg\.(torch\.onnx|torch\.export|onnxscript)\.|{_NAMESPACE}\Z")
"""Lists the keys under which torch and onnxscript write."""
_MERGED = "onnxsmith.merged"
_SCALED = "onnxsmith.scaled"
_FOLDED = "pkg.onnxscript.optimizer.folded_from"
_TORCH_ITSELF = re.compile(r"-packages/torch/|^torch/|/torch/(nn|export|_export|fx|_dynamo|_functorch|onnx|utils)/")
_CODE = re.compile(r'File "([^"]+)", line (\d+), in [^\n]+\n(?![ \t]*File ")[ \t]+([^\n]+)')
_TRACED = re.compile(r"^(\S.*\.py)\((\d+)\): [\w<>.]+$", re.MULTILINE)
_HERE = re.compile(r"([^\n]*)\n[ ~]*<--- HERE")
_SCRIPTED = re.compile(r'File "([^"]+)", line (\d+)')
_OWN = re.compile(r"'[\w.]*'\]")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ([^\n]+)')


@dataclass(frozen=True)
class Provenance:
    """`module` is the path of the torch module (`layers.0.conv`), `source` is `file:line`, `op` the aten operator."""

    module: str = ""
    source: str = ""
    op: str = ""

    def __str__(self) -> str:
        return " ".join(text for text in (self.module, f"({self.source})" if self.source else "") if text)


def of(node: ir.Node) -> Provenance:
    """Returns the origin of a node; its fields are empty if the file does not name it."""
    props = node.metadata_props
    classes = _strings(props.get(_CLASSES, ""))
    return Provenance(
        module=module_of(node),
        source=user_line(trace_of(node)),
        op=classes[-1] if classes else "",
    )


def module_of(node: ir.Node) -> str:
    """Returns the path of the torch module that a node comes from; "" if the file does not name it."""
    return next((scope for scope in reversed(_outer(node.metadata_props.get(_SCOPES, ""))) if scope), "")


def class_of(node: ir.Node) -> str:
    """Returns the class of the torch module that a node comes from (`torch.nn.modules.linear.Linear`); "" if the file
    does not name it."""
    classes = _strings(node.metadata_props.get(_CLASSES, ""))
    return classes[-2] if len(classes) > 1 else ""


def calls(node: ir.Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the paths of the torch modules around a node, the outermost first, and their classes; the path of the
    whole model is "". Both are empty if the file does not name them."""
    props = node.metadata_props
    scopes, classes = _outer(props.get(_SCOPES, "")), _outer(props.get(_CLASSES, ""))
    return scopes, classes if len(classes) == len(scopes) else ("",) * len(scopes)


def _outer(text: str) -> tuple[str, ...]:
    """Returns the items of a list without the last, which is the operation. Cached, because many nodes have the same
    list and parsing is slow."""
    outer, comma, own = text.rpartition(", ")
    if comma and _OWN.fullmatch(own):
        return _parsed(f"{outer}]")
    return tuple(_strings(text)[:-1]) if comma else ()


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[str, ...]:
    return tuple(_strings(text))


def modules_of(nodes: Iterable[ir.Node]) -> list[str]:
    """Returns the paths of the torch modules around all the nodes whose origin the file names, the outermost first."""
    common: list[str] | None = None
    for node in nodes:
        scopes = _strings(node.metadata_props.get(_SCOPES, ""))[:-1]
        if scopes and common is None:
            common = scopes
        elif scopes and common is not None:
            common = [one for one, other in zip(common, scopes, strict=False) if one == other]
    return common or []


def place(node: ir.Node, modules: Sequence[str]) -> None:
    """Moves the origin of a node up to the innermost of these nested modules, out of the modules inside it."""
    for key in (_SCOPES, _CLASSES):
        held = _strings(node.metadata_props.get(key, ""))
        if held and modules:
            node.metadata_props[key] = repr([*held[: len(modules)], held[-1]])


def move(node: ir.Node, before: Sequence[str], after: Sequence[str]) -> None:
    """Moves the origin of a node to the same place in another module: `layers.0.conv` becomes `layers.1.conv`. Removes
    the name of the operation in the exported program, which is then unknown."""
    props = node.metadata_props
    scopes = _strings(props.get(_SCOPES, ""))
    if not before or not after or not before[-1] or list(before) == list(after):
        return
    if scopes[: len(before)] != list(before) or len(scopes) == len(before):
        return

    def moved(path: str) -> str:
        inside = path == before[-1] or path.startswith(f"{before[-1]}.")
        return after[-1] + path[len(before[-1]) :] if inside else path

    props[_SCOPES] = repr([*after, *map(moved, scopes[len(before) : -1]), ""])
    if _NAMESPACE in props:
        steps = [step.partition(":") for step in props[_NAMESPACE].split("/")]
        props[_NAMESPACE] = "/".join(f"{moved(name)}{colon}{kind}" for name, colon, kind in steps)
    for key in (_LINE, _MERGED):
        props.pop(key, None)


def forget_merged(node: ir.Node) -> None:
    """Removes the names of other operations of the program that were merged into a node."""
    node.metadata_props.pop(_MERGED, None)


def estrange(node: ir.Node) -> None:
    """Marks a node that computes a multiple of its origin's result; a later node undoes the factor."""
    node.metadata_props[_SCALED] = "true"


def fx_name(node: ir.Node) -> str:
    """Returns the name of the node's operation in the exported program. Empty if the file does not name it, or if a
    rewrite made the node compute something else."""
    if _SCALED in node.metadata_props:
        return ""
    return next(iter(_strings(node.metadata_props.get(_SCOPES, ""))[-1:]), "")


_SIMPLE = re.compile(r"\[(?:'[\w./: ]*'(?:, |(?=\])))*\]")
"""Matches a list of texts without quotes and escapes, as `repr` writes it. Its items are the texts between quotes."""


def _strings(text: str) -> list[str]:
    if _SIMPLE.fullmatch(text):  # nearly every list; Python's parser takes ten times as long
        return text.split("'")[1::2]
    try:
        value = ast.literal_eval(text) if text else []
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return []
    return [str(item) for item in value] if isinstance(value, list) else []


def folded_from(value: ir.Value) -> list[str]:
    """Returns the names of the tensors from which onnxscript's optimizer computed a stored tensor. Mostly they are
    parameters of the torch module."""
    return _strings(value.metadata_props.get(_FOLDED, ""))


def names_of(node: ir.Node) -> list[str]:
    """Returns the names of all operations of the exported program that a node comes from, its own first."""
    props = node.metadata_props
    own = _strings(props.get(_SCOPES, ""))[-1:]
    return list(dict.fromkeys(own + _strings(props.get(_MERGED, ""))))


def program_text(node: ir.Node) -> str:
    """Returns the line of the exported program that a node comes from; "" if the file does not have it."""
    return node.metadata_props.get(_LINE, "")


def user_code(node: ir.Node) -> str:
    """Returns the source code of the line in `of(node).source`; "" if the file does not have it."""
    return code_of(trace_of(node))


@functools.lru_cache(maxsize=4096)
def code_of(trace: str) -> str:
    """Returns the source code of the line that `user_line` names; "" if the trace does not have it."""
    where = user_line(trace)
    found = [code for file, line, code in _CODE.findall(trace) if f"{file}:{line}" == where]
    return found[-1].strip() if found else ""


def as_trace(ranges: str) -> str:
    """Writes the source range of a TorchScript operation as a stack trace, the innermost frame last. A traced operation
    has the frames `file.py(12): forward` with the innermost first, a scripted one `File "file.py", line 12` and lines
    of its source with `<--- HERE` below the current line. Returns "" for other texts."""
    written = ranges.partition("\nSerialized ")[0]
    scripted, here = _SCRIPTED.search(written), _HERE.search(written)
    if scripted and here:
        return f'  File "{scripted[1]}", line {scripted[2]}, in forward\n    {here[1].strip()}'
    return "\n".join(f'  File "{file}", line {line}, in forward' for file, line in reversed(_TRACED.findall(written)))


def trace_of(node: ir.Node) -> str:
    """Returns the node's stack trace: from the metadata of torch's current exporter, or from the doc string that the
    TorchScript exporter writes with `verbose=True`. Returns "" if the file has none."""
    return node.metadata_props.get(_TRACE, "") or (as_trace(node.doc_string) if node.doc_string else "")


@functools.lru_cache(maxsize=4096)
def user_line(trace: str) -> str:
    """Returns the innermost frame outside torch: the line that the user can change. Cached, because the nodes of equal
    layers have equal traces."""
    frames = _FRAME.findall(trace)
    written = [frame for frame in frames if not frame[0].startswith("<")]  # <eval_with_key>.1 is torch's own
    own = [frame for frame in written if not _TORCH_ITSELF.search(frame[0].replace("\\", "/"))]
    if not own:
        return ""
    file, line, _ = own[-1]
    return f"{file}:{line}"


_OF_ONE_RUN = re.compile(r" at 0x[0-9a-f]+\b|(?<=<eval_with_key>)\.\d+")
"""Finds what differs from one run of torch to the next: the address of a function in memory, and the count of pieces of
code that were generated before."""


def shorten(model: ir.Model) -> None:
    """Removes the current folder and the packages' folder from the paths in stack traces, and addresses in memory and
    torch's counters of generated code from all texts of the nodes.

    So the file tells nothing about the machine, and is identical on every machine with the same sources.
    """
    packages = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")}
    folders = sorted({str(Path.cwd()), *packages}, key=len, reverse=True)
    pattern = re.compile("|".join(f'(?<=File "){re.escape(folder)}{re.escape(os.sep)}' for folder in folders))
    for node in walk.all_nodes(model):
        for key, text in list(node.metadata_props.items()):
            same = _OF_ONE_RUN.sub("", pattern.sub("", text) if key == _TRACE else text)
            if same != text:
                node.metadata_props[key] = same


def abridge(model: ir.Model) -> int:
    """Shortens the exporters' metadata to the parts that `of`, `modules_of` and `names_of` read: the modules, the
    operation, and the user's own line without its code. Returns the number of removed characters. They may be a tenth
    of a small quantised file."""
    before = 0
    after = 0
    for node in walk.all_nodes(model):
        props = node.metadata_props
        before += _length(props)
        _abridge(props, of(node))
        after += _length(props)
    for value in walk.values(model):
        before += _length(value.metadata_props)
        for key in [key for key in value.metadata_props if _EXPORTERS.match(key)]:
            del value.metadata_props[key]
        after += _length(value.metadata_props)
    return before - after


def _abridge(props: dict[str, str], origin: Provenance) -> None:
    for key in [key for key in props if _EXPORTERS.match(key) and key != _SCOPES]:
        del props[key]
    if origin.op:
        props[_CLASSES] = repr([origin.op])
    if origin.source:
        file, _, line = origin.source.rpartition(":")
        props[_TRACE] = f'File "{file}", line {line}, in forward'


def _length(props: Mapping[str, str]) -> int:
    return sum(len(key) + len(text) for key, text in props.items())


def inherit(new: Iterable[ir.Node], old: Iterable[ir.Node]) -> None:
    """Gives `new` nodes the origin of the `old` nodes that they replace. The origin is that of the first old node with
    an origin; the origins of the others are listed as merged. Copies the doc string, too, because the TorchScript
    exporter writes the origin there."""
    new, old = list(new), list(old)
    said = next((node.doc_string for node in old if node.doc_string), None)
    for node in new:
        node.doc_string = node.doc_string or said
    sources = [node for node in old if any(key.startswith(_PREFIX) for key in node.metadata_props)]
    if not sources:
        return
    first = sources[0].metadata_props
    merged = _strings(first.get(_MERGED, ""))
    for node in sources[1:]:
        merged += _strings(node.metadata_props.get(_SCOPES, ""))[-1:] + _strings(node.metadata_props.get(_MERGED, ""))
    for node in new:
        listed = list(dict.fromkeys([*_strings(node.metadata_props.get(_MERGED, "")), *merged]))
        for key, value in first.items():
            node.metadata_props.setdefault(key, value)
        if listed:
            node.metadata_props[_MERGED] = repr(listed)
