"""Reads the words of a command line, and shows help.

It understands what users of other tools type: their verbs name ours, and an argument may be given as an option.
"""

from __future__ import annotations

from typing import Any

import typer
import typer.core

from onnxsmith.base.near_names import near_names

PEERS = {
    "info": "inspect", "show": "inspect", "print": "inspect", "summary": "inspect", "stats": "inspect",
    "netron": "view", "visualize": "view", "draw": "view", "convert": "export", "validate": "check", "lint": "check",
    "checker": "check", "verify": "compare", "test": "compare", "optimize": "simplify", "sanitize": "simplify",
    "sim": "simplify", "slim": "simplify", "surgeon": "edit", "debug": "reduce", "upgrade": "opset",
    "benchmark": "bench", "perf": "bench", "fp16": "quantize", "infer": "run",
}  # fmt: skip
"""Maps the verbs of other tools to ours: Polygraphy, onnx's own scripts, onnxsim, onnxslim, Netron, Olive, tract."""


_SIZES = {"--dynamic", "--dynamic-axes", "--dynamic-shapes", "--input-shape", "--input-shapes", "--shapes"}
"""Lists the options for sizes of `export`, Polygraphy, trtexec and the like, where ours is `--dim`."""


class Commands(typer.core.TyperGroup):
    """The group of commands. For a verb that it does not have, the error names ours. The object of its context is a
    function that returns the sentences of its commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the options before the command."""
        _read_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands for `--help`."""
        from onnxsmith.cli.help import pages

        pages.write_commands(formatter, ctx.obj(), by_situation=ctx.parent is None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the command of the first word."""
        wanted = args[0] if args else ""
        if not wanted or wanted.startswith("-") or self.get_command(ctx, wanted) is not None:
            return super().resolve_command(ctx, args)
        near = near_names(wanted, self.list_commands(ctx), 1)
        path = "onnxsmith" if ctx.parent is None else f"onnxsmith {ctx.info_name}"
        ours = (PEERS.get(wanted, "") if ctx.parent is None else "") or next(iter(near), "")
        command = self.get_command(ctx, ours) if ours else None
        more = ""
        if command is not None:
            more = f" Type `{path} {ours}`: {command.get_short_help_str(100)}"
        return ctx.fail(f"There is no command {wanted!r}.{more or f' `{path} --help` lists the commands.'}")


class Command(typer.core.TyperCommand):
    """A command whose last argument may also be given as an option: `opset m.onnx --to 17` is `opset m.onnx 17`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the option's value behind the other words before they are parsed."""
        arguments = [one for one in self.params if isinstance(one, typer.core.TyperArgument)]
        options = {text for one in self.params if isinstance(one, typer.core.TyperOption) for text in one.opts}
        before = args[: args.index(_NO_MORE_OPTIONS)] if _NO_MORE_OPTIONS in args else args
        if "--help-all" in before and not ctx.resilient_parsing:
            ctx.meta[ALL] = True
            typer.echo(ctx.get_help())
            ctx.exit()
        self._refuse_sizes(ctx, before, options)
        last: Any = arguments[-1] if len(arguments) > 1 else None
        if last is not None and last.nargs == 1:
            args = _as_argument(args, f"--{str(last.name).replace('_', '-')}", options)
        _read_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def _refuse_sizes(self, ctx: Any, args: list[str], options: set[str]) -> None:
        """Names our option for sizes where another verb's or another tool's was typed."""
        ours = next((one for one in self.params if "--dim" in one.opts), None)
        typed = next((word for one in args if (word := one.partition("=")[0]) in _SIZES and word not in options), None)
        if ours is not None and typed is not None:
            ctx.fail(
                f"No such option: {typed}. Symbolic dimensions of a file get sizes without an option, and the report "
                f"lists these; to choose, add --dim: {getattr(ours, 'help', '')}."
            )

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Writes what the command does, and the line that most users need."""
        from onnxsmith.cli.help import pages

        super().format_help_text(ctx, formatter)
        pages.write_usual_line(formatter, ctx.obj)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the options that people use; with `--help-all`, all of them."""
        from onnxsmith.cli.help import pages

        pages.write_options(formatter, ctx, self.get_params(ctx), whole=bool(ctx.meta.get(ALL)))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the examples."""
        from onnxsmith.cli.help import pages

        pages.write_examples(formatter, ctx.obj)


ALL = "onnxsmith: all options"
"""Is the key under which a context of typer says that `--help-all` was typed."""


def _read_plainly(parameters: list[Any]) -> None:
    """Lets texts, flags and defaults be read as they are given. typer would import pydantic for them, which takes as
    long as reading a small model. Without the private name in typer, it does so."""
    for one in parameters:
        kind = getattr(getattr(one, "type_descriptor", None), "annotation", None)
        if kind is not None:
            one._runtime_param = _Plain(kind)


class _Plain:
    """Reads the value of a parameter; `kind` is its type."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Returns a text, a flag, a list of texts, or a default. Lets typer read what was typed for other types."""
        if self._kind == list[str]:
            return list(value or ())
        typed = (value,) if isinstance(value, str) else value if isinstance(value, tuple | list) else ()
        if self._kind in _AS_GIVEN or not any(isinstance(one, str) for one in typed):
            return value
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


_NO_MORE_OPTIONS = "--"

_AS_GIVEN = (str, str | None, bool, bool | None)


def _as_argument(args: list[str], option: str, options: set[str]) -> list[str]:
    """Moves the value of `option` to the end, unless the command has such an option. Words behind `--` are no
    options."""
    if option in options:
        return args
    for place, word in enumerate(args):
        if word == _NO_MORE_OPTIONS:
            break
        if word == option and place + 1 < len(args):
            return [*args[:place], *args[place + 2 :], args[place + 1]]
        if word.startswith(f"{option}="):
            return [*args[:place], *args[place + 1 :], word.partition("=")[2]]
    return args
