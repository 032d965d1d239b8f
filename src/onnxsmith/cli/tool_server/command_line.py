"""Makes the words of a command line from the arguments of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import nearest
from onnxsmith.cli.tool_server.root import Root
from onnxsmith.cli.tool_server.tools import MUST_WRITE, OUTPUT, Parameter, Tool

_LONGEST = 100_000
"""Limits the bytes of a text. Linux takes words of up to 131,072 bytes (MAX_ARG_STRLEN)."""
_MODELS = (".onnx", ".onnxtxt")
_PROGRAMS = (".py", ".pt", ".pt2", ".pth", ".pkl", ".pickle")
"""Endings of files that run code when they are loaded, or may."""
_NAME = "model.onnx"
"""Names the output of a call that names none, if no output is kept."""


@dataclass(frozen=True)
class Permissions:
    """What the user allows: to keep files in the folder, and to run Python code."""

    write: bool = False
    code: bool = False


@dataclass(frozen=True)
class CommandLine:
    """The words after the verb. `outputs` are the paths in the root that the command writes. With `unkept`, it writes
    its output into a temporary folder."""

    words: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    unkept: bool = False


def command_line(
    tool: Tool, given: Mapping[str, Any], root: Root, permissions: Permissions, temporary: Path
) -> CommandLine:
    """Returns the words for a call. Without the permission to write, the output goes to the folder `temporary`.

    Raises:
        OnnxsmithError: `mcp/argument`, `mcp/read-only`, `mcp/code`, and those of `Root`.
    """
    values = _values(tool, given)
    if tool.verb == "export" and not permissions.code:
        raise _runs_code("an export", str(next(iter(values.values()), "")))
    arguments: list[str] = []
    options: list[str] = []
    outputs: list[str] = []
    unkept = False
    for parameter, value in values.items():
        for one in value if isinstance(value, list) else [value]:
            if parameter.typed == OUTPUT and not permissions.write:
                continue
            text = _confined(parameter, one, root)
            if parameter.reads and parameter.is_argument and not permissions.code and _is_code(text, tool.verb):
                raise _runs_code("this argument", text)
            if parameter.suffixes:
                outputs.append(text)
            if parameter.is_argument:
                arguments.append(text)
            else:
                options += _option(parameter, one, text)
    output = tool.parameter(OUTPUT)
    if output is not None and not permissions.write and (tool.verb in MUST_WRITE or _writes(tool, values)):
        name = Path(_confined(output, values.get(output) or _NAME, root)).name
        options.append(f"{OUTPUT}={temporary / name}")
        unkept = True
    return CommandLine((*options, "--", *arguments), tuple(outputs), unkept)


def _writes(tool: Tool, values: Mapping[Parameter, Any]) -> bool:
    """Whether a command that writes on request was asked to."""
    return any(bool(value) for one, value in values.items() if one.typed in (OUTPUT, "--fix"))


def _values(tool: Tool, given: Mapping[str, Any]) -> dict[Parameter, Any]:
    """Returns the values by parameter, in the order of the command line, after their types were checked."""
    found: dict[Parameter, Any] = {}
    for name, value in given.items():
        parameter = tool.parameter(name)
        if parameter is None:
            raise _unknown(tool, name)
        if parameter in found:
            raise _wrong(parameter, "it is given twice", f"leave out {name}")
        if value is not None:
            found[parameter] = _typed(parameter, value)
    missing = [one.name for one in tool.parameters if one.required and one not in found]
    if missing:
        raise problem(
            "mcp/argument",
            f"{tool.verb} needs {missing[0]}",
            where=missing[0],
            fix=f"add {missing[0]}: {next(one.help for one in tool.parameters if one.name == missing[0])}",
        )
    return {one: found[one] for one in tool.parameters if one in found}


def _typed(parameter: Parameter, value: Any) -> Any:
    if parameter.repeats:
        listed = value if isinstance(value, list) else [value]
        return [_single(parameter, one) for one in listed]
    return _single(parameter, value)


def _single(parameter: Parameter, value: Any) -> Any:
    kinds: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
    }
    expected = kinds[parameter.kind]
    if isinstance(value, bool) is not (parameter.kind == "boolean") or not isinstance(value, expected):
        several = " (or a list of them)" if parameter.repeats else ""
        raise _wrong(parameter, f"{value!r:.80} is no {parameter.kind}", f"give a {parameter.kind}{several}")
    if isinstance(value, str):
        _refuse_text(parameter, value)
    return value


def _refuse_text(parameter: Parameter, text: str) -> None:
    """Raises for a text that cannot be a word of a command line."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise _wrong(
            parameter, "the text has half of a character (a lone surrogate)", "give whole characters"
        ) from None
    if "\0" in text:
        raise _wrong(parameter, "the text has a null character", "leave the character out")
    if size > _LONGEST:
        raise _wrong(
            parameter, f"the text has {size:,} bytes, more than {_LONGEST:,}", "give the part around the error"
        )
    if (parameter.reads or parameter.suffixes) and not text:
        raise _wrong(parameter, "the path is empty", "give the path of a file")
    if parameter.is_argument and text == "-":
        raise _wrong(parameter, "- stands for standard input, which a call does not have", "give the text itself")


def _confined(parameter: Parameter, value: Any, root: Root) -> str:
    """Returns the value as a word; a path as it is inside the root."""
    if parameter.suffixes:
        if Path(value).suffix not in parameter.suffixes:
            extensions = ", ".join(parameter.suffixes)
            raise problem(
                "mcp/output",
                f"{parameter.name} does not write a file with this extension",
                where=value,
                why="a file of another kind could be replaced",
                fix=f"give a path with one of these extensions: {extensions}",
            )
        return root.written(value)
    if parameter.reads:
        return root.read(value)
    return str(value)


def _option(parameter: Parameter, value: Any, text: str) -> Iterator[str]:
    if parameter.kind != "boolean":
        yield f"{parameter.typed}={text}"
    elif value:
        yield parameter.typed
    elif parameter.default is None:  # a choice of three: on, off, or as the command decides
        yield parameter.typed.replace("--", "--no-", 1)


def _is_code(word: str, verb: str) -> bool:
    """Whether a model argument names Python code, or a file that may hold code. Only `compare` takes
    `m.onnx@runtime:level`."""
    before, at, _ = word.rpartition("@")
    if verb == "compare" and at and ":" not in before and Path(before).suffix in _MODELS:
        return False
    return ":" in word or Path(before if at else word).suffix.lower() in _PROGRAMS


def _runs_code(what: str, where: str) -> OnnxsmithError:
    return problem(
        "mcp/code",
        f"{what} runs Python code, which this server does not allow",
        where=where,
        why="code can read and write every file of the user, in any folder",
        fix="give an .onnx file; or the user, who has to trust the code, starts the server with --allow-code",
    )


def _unknown(tool: Tool, name: str) -> OnnxsmithError:
    if tool.is_hidden(name):
        return problem(
            "mcp/read-only",
            f"{name} writes a file, and this server is read-only",
            where=name,
            fix=f"leave out {name}; or the user starts the server with --write",
        )
    names = [one.name for one in tool.parameters]
    near = nearest(name.lstrip("-").replace("-", "_"), names)
    return problem(
        "mcp/argument",
        f"{tool.verb} has no argument {name!r:.80}",
        where=name[:80],
        why=f"its arguments are {', '.join(names)}",
        fix=f"write {near}" if near else "leave the argument out",
    )


def _wrong(parameter: Parameter, why: str, fix: str) -> OnnxsmithError:
    return problem(
        "mcp/argument", f"the value of {parameter.name} cannot be used", where=parameter.name, why=why, fix=fix
    )
