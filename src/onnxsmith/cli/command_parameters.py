"""Makes the parameters of a command line from the fields of a command."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer

from onnxsmith.base.options import called, spelled

_SHARED = {
    "json": (bool, typer.Option("--json", help="print the report as JSON"), False),
    "html": (str, typer.Option("--html", help="write the report as one HTML file", metavar="FILE"), ""),
    "report": (
        list[str],
        typer.Option(
            "--report",
            help="write the report to this file; its extension sets the format: .html, .json, .md, .sarif, .xml (JUnit)"
            "; charts of a .md become pictures beside it; repeatable",
            metavar="FILE",
        ),
        [],
    ),
    "verbose": (
        bool,
        typer.Option("--verbose", "-v", help="print everything: every part, every row of every table"),
        False,
    ),
    "quiet": (
        bool,
        typer.Option("--quiet", "-q", help="print problems only, and what quantize, bisect or prune cost"),
        False,
    ),
}
"""Options of every command that say how to show its report."""
_VIEW = (
    str,
    typer.Option(
        "--view",
        help="also write a page that shows the model, as `onnxsmith view` does; the --html report links to it",
        metavar="FILE",
    ),
    "",
)
"""An option of every command about a model file."""
_RECORD = (
    str,
    typer.Option(
        "--record", help="write a record of the files and the comparison, for `onnxsmith verify-record`", metavar="FILE"
    ),
    "",
)
"""An option of every command that makes a statement about a model."""
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def shared(*, view: bool, record: bool) -> dict[str, tuple[Any, Any, Any]]:
    """Returns the options that commands share: for each name its type, its option and its default. `view` and `record`
    add the options of these names."""
    return {**_SHARED, **({"view": _VIEW} if view else {}), **({"record": _RECORD} if record else {})}


def give(function: Callable[..., None], settings: type[Any], more: Mapping[str, tuple[Any, Any, Any]]) -> None:
    """Gives a function the parameters that typer reads: the fields of a dataclass, and `more`."""
    parameters = list(_parameters(settings))
    for name, (kind, option, default) in more.items():
        parameters.append(inspect.Parameter(name, _KEYWORD, default=default, annotation=Annotated[kind, option]))
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def _parameters(settings: type[Any]) -> Iterator[inspect.Parameter]:
    """Yields a parameter for each field of a dataclass. A group of settings yields a parameter for each of its
    fields."""
    kinds = typing.get_type_hints(settings)
    for field in dataclasses.fields(settings):
        if field.metadata["kind"] == "group":
            yield from _parameters(field.metadata["settings"])
        else:
            yield _parameter(field, kinds[field.name])


def _number(text: str | float) -> float:
    """Reads a number, or a percentage: `1%` is 0.01."""
    given = str(text).strip()
    return float(given.removesuffix("%")) / 100 if given.endswith("%") else float(given)


def _parameter(field: dataclasses.Field[Any], kind: Any) -> inspect.Parameter:
    about = field.metadata
    default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
    if typing.get_origin(kind) is tuple or field.default == ():
        kind, default = list[str], []  # an option that may be repeated; typer wants a list here
    declared: Any
    if about["kind"] == "argument":
        declared = typer.Argument(help=about["help"], metavar=about.get("metavar") or field.name.upper())
    else:
        flagged = about["kind"] == "flag"
        names = [spelled(field), *filter(None, [about.get("short")])]
        if typing.get_origin(kind) in (typing.Union, types.UnionType) and bool in typing.get_args(kind):
            names[0] += f"/{names[0].replace('--', '--no-', 1)}"
        metavar = None if flagged else about.get("metavar") or None
        if kind in (float, float | None):
            declared = typer.Option(*names, help=about["help"], metavar=metavar or "<float>", parser=_number)
        else:
            declared = typer.Option(*names, help=about["help"], metavar=metavar, hidden=bool(about.get("now")))
    return inspect.Parameter(called(field), _KEYWORD, default=default, annotation=Annotated[kind, declared])
