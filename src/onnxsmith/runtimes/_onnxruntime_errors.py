"""Turns onnxruntime's messages into problems with a fix."""

from __future__ import annotations

import re
from collections.abc import Callable

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import nearest, pasted

_ASKED = 400
"""Limits the length of a message in the suggested command that explains the message. A choice: onnxruntime puts the
node at the beginning of a message and the reason at its end, and both are in 200 characters."""
_SOURCE_LINE = re.compile(r"[\w./\\:-]*[/\\][\w.-]+\.(?:cc|cpp|cu|cuh|h|hpp):\d+ (?=onnxruntime::)")
"""Matches the line of onnxruntime's own source in a message, in front of the function."""
_PARAMETERS = re.compile(r"(onnxruntime::[\w:~]+)\([^()]*\)(?: const)?")
"""Matches a function of onnxruntime with the types of its parameters."""


def _unsupported_version(match: re.Match[str]) -> OnnxsmithError:
    from onnxsmith.graph.structure.versions import newest_opset

    return problem(
        "runtime/ir-unsupported",
        f"the file has IR version {match[1]}, but the installed onnxruntime reads only up to {match[2]}",
        fix="`pip install --upgrade onnxruntime`, or `onnxsmith opset MODEL "
        f"{newest_opset(int(match[2]))} --ir-version {match[2]} -o older.onnx`",
    )


def _unsupported_opset(match: re.Match[str]) -> OnnxsmithError:
    return problem(
        "runtime/opset-unsupported",
        f"the model uses opset {match[1]}, but the installed onnxruntime supports only up to {match[2]}",
        fix=f"`pip install --upgrade onnxruntime`, or `onnxsmith opset MODEL {match[2]} -o older.onnx`",
    )


def _no_kernel(match: re.Match[str]) -> OnnxsmithError:
    from onnxsmith.graph.structure.opset_range import OLDEST

    before = int(match[2]) - 1
    older = f"or try an older form of {match[1]}: `onnxsmith opset MODEL {before} -o older.onnx`; "
    return problem(
        "runtime/no-kernel",
        f"onnxruntime has no kernel for {match[1]} in its version of opset {match[2]}, or no kernel for these dtypes",
        where=f"node {match[3]!r}" if match[3] else "",
        why=(
            "the operator is known, but not in this form on this provider: kernels for new opsets and for "
            "bfloat16 are often missing"
        ),
        fix=f"run the model as it is with --runtime reference; {older if before >= OLDEST else ''}or put a Cast to "
        "float before the node and a Cast back after it",
    )


def _unknown_operator(match: re.Match[str]) -> OnnxsmithError:
    return problem(
        "runtime/unknown-operator",
        f"onnxruntime does not know the operator {match[1]}",
        why="the model's opset has no such operator: it belongs to a newer opset, or was experimental in an old opset"
        if match[1].rpartition(":")[0] in ("", "ai.onnx")
        else "operators of this domain need their own library, or a newer onnxruntime",
        fix="`onnxsmith inspect MODEL --nodes` lists the nodes of this operator: write them in standard operators, in "
        "your module or in the file (`onnxsmith replace -h`)",
    )


def _index_outside(match: re.Match[str]) -> OnnxsmithError:
    node = re.search(r"Name:'([^']+)'", match.string) or re.search(r"running (\w+) node", match.string)
    reader = f"the node {node[1]!r}" if node else "the node"
    return problem(
        "runtime/failed",
        "onnxruntime refused or failed",
        where=reader.removeprefix("the ") if node else "",
        why=re.sub(r"\s+", " ", match.string).strip()[:600],
        fix=f"give indices from 0 to {match[3]}, the last place on the axis that {reader} reads: this run has "
        f"{match[1]}",
    )


def _misdeclared_output(match: re.Match[str]) -> OnnxsmithError:
    return problem(
        "runtime/failed",
        f"the size that the file declares for the output {match[1]} is not the size that the model computes",
        where=f"output {match[1]!r}, axis {match[2]}",
        why=f"the axis has the size {match[3]}, but the file declares {match[4]}; a bound output must have "
        "the declared size",
        fix="`onnxsmith simplify MODEL -o corrected.onnx` writes a file that declares the computed sizes",
    )


def _operator_of_no_opset(match: re.Match[str]) -> OnnxsmithError:
    """Tells an operator that ONNX got in a later opset than the model's from one that onnxruntime does not know."""
    from onnxsmith.graph.structure import schema
    from onnxsmith.graph.structure.file_change import renamed_operator

    op, opset = match[1], int(match[2])
    since = min(schema.versions(op, ""), default=0)
    if not since and (meant := nearest(op, schema.operators("", opset))):
        return problem(
            "runtime/unknown-operator",
            f"onnxruntime does not know the operator {op}",
            why=f"ONNX has no operator of this name; the nearest name is {meant}",
            fix=f"if {meant} is meant, write it in the file: {renamed_operator('MODEL', op, meant)}",
        )
    if since <= opset:
        return _unknown_operator(match)
    return problem(
        "runtime/unknown-operator",
        f"{op} exists since opset {since}, but the model declares opset {opset}",
        why="onnxruntime reads each node as the model's opset defines it",
        fix=f"export the model again at opset {since} or newer, or declare opset {since} in the file",
    )


def _not_implemented(match: re.Match[str]) -> OnnxsmithError:
    return problem(
        "runtime/no-kernel",
        f"onnxruntime has no kernel for {match[1]} with these attributes or sizes",
        where=f"node {match[2]!r}" if match[2] else "",
        why=re.sub(r"\s+", " ", match[0]).strip()[:600],
        fix="try another runtime: --runtime reference, --runtime openvino",
    )


def _no_such_dtype(match: re.Match[str]) -> OnnxsmithError:
    return problem(
        "runtime/no-kernel",
        f"onnxruntime does not know the dtype {match[1]}",
        fix="run the model with --runtime reference",
    )


_LACKING = (
    r"running (\w+) node\. Name:'([^']*)'"
    r".*?(?:[Nn]ot (?:yet )?(?:supported|implemented)|NOT_IMPLEMENTED|[Oo]nly supports?\b).*"
)

_MESSAGES: tuple[tuple[str, Callable[[re.Match[str]], OnnxsmithError]], ...] = (
    (r"Unsupported model IR version: (\d+), max supported IR version: (\d+)", _unsupported_version),
    (r"Opset (\d+) is under development.*is till opset (\d+)", _unsupported_opset),
    (r"Could not find an implementation for (\S+?)\((\d+)\) node with name '([^']*)'", _no_kernel),
    (r"Fatal error: (\S+?)\(-?\d+\) is not a registered function/op", _unknown_operator),
    (r"No Op registered for (\S+) with domain_version of (\d+)", _operator_of_no_opset),
    (r"No Op registered for (\S+) with domain_version", _unknown_operator),
    (r"MLDataType for: tensor\((\w+)\) is not currently registered or supported", _no_such_dtype),
    (_LACKING, _not_implemented),
    (
        r"Got invalid dimensions for output: (\S+) for the following indices\s+index: (\d+) Got: (\d+) Expected: (\d+)",
        _misdeclared_output,
    ),
    (r"idx=(-?\d+) must be within the inclusive range \[(-?\d+),(-?\d+)\]", _index_outside),
)


def translate(error: Exception) -> OnnxsmithError:
    """Turns onnxruntime's message into a problem with a fix."""
    text = str(error)
    for pattern, make in _MESSAGES:
        if match := re.search(pattern, text, re.DOTALL):
            return make(match)
    node = re.search(r"[Nn]ame:'([^']*)'", text) or re.search(r"Node \(([^)]*)\)", text)
    said = re.sub(r"\s+", " ", text).strip()
    return problem(
        "runtime/failed",
        "onnxruntime refused or failed",
        where=f"node {node[1]!r}" if node else "",
        why=said[:600],
        fix=f"`onnxsmith explain {pasted(_asked(said))}` says what this message means, if it is a known one",
    )


def _asked(message: str) -> str:
    """Returns the message for the command that explains it: without places in onnxruntime's source, without the name of
    a file, which may be a temporary one, and without the middle of a long message."""
    text = re.sub(r"Load model from \S+ failed:", "Load model from model.onnx failed:", message)
    text = _PARAMETERS.sub(r"\1", _SOURCE_LINE.sub("", text))
    half = _ASKED // 2
    return text if len(text) <= _ASKED else f"{text[:half]} … {text[-half:]}"
