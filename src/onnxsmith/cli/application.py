"""The command line: parses arguments, runs the command, renders its report, and sets the exit status."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import inspect
import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import typer

from onnxsmith._version import __version__
from onnxsmith.base import clock, interrupts, limits, rooms, unexpected
from onnxsmith.base.options import called, deprecated
from onnxsmith.base.printable import below, one_line
from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.spelling import typed
from onnxsmith.base.system import standard_output
from onnxsmith.cli import command_list, command_parameters, forgiving, printed_streams
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.help.situations import PURPOSE
from onnxsmith.cli.interruption import Interruption
from onnxsmith.cli.side_files import SideFiles

T = TypeVar("T")

_COMPLETING = "_ONNXSMITH_COMPLETE"
"""Names the environment variable by which a shell asks for completions, without any word behind the program's name."""
_HELP = ["-h", "--help"]
"""Names the options that ask for help."""
_PLAIN: dict[str, Any] = {
    "no_args_is_help": True,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,  # plain help: importing rich would double the time of --help
}
"""Settings of the application and of each group of commands."""


_process: list[float] = []
"""Holds the start of the process if it was started for one command."""


_NUMPY = r".*(encountered in|Mean of empty slice|All-NaN|Degrees of freedom)"
"""Matches numpy's warnings about numbers."""


def main(begin: float | None = None) -> None:
    """Runs the `onnxsmith` command. `begin` is the start of the process on the scale of `time.monotonic`, if the
    process was started for this command."""
    _process[:] = [begin] if begin is not None else []
    if begin is not None:
        standard_output.keep()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # show a question mark where the terminal cannot show a character
    # Reports say what is not finite; a warning of numpy beside them names a line of ours, which helps nobody.
    warnings.filterwarnings("ignore", _NUMPY, RuntimeWarning)
    with printed_streams.cleaned():
        try:
            _run()
        except OSError as error:
            with contextlib.suppress(OSError):
                known = limits.problem_of(error)
                sys.stderr.write(f"the report could not be written: {known or error}\n")
                sys.stderr.flush()
            with contextlib.suppress(OSError):
                _discard_output()
            sys.exit(2)


def _run() -> None:
    """Runs the command. Writes all that it printed before it ends.

    Raises:
        OSError: what it printed could not be written.
    """
    try:
        if sys.argv[1:] or _COMPLETING in os.environ:
            _build(next(iter(sys.argv[1:]), ""))()
        else:
            from onnxsmith.cli.help import this_folder

            sys.stdout.write(this_folder.page(Path()))
    finally:
        sys.stdout.flush()


def _discard_output() -> None:
    """Discards what is still to be written: Python would fail again when it flushes at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nothing, stream.fileno())


def __getattr__(name: str) -> Any:
    """Makes `app`, the application with all commands."""
    if name == "app":
        return _build()
    raise AttributeError(name)


def _build(wanted: str = "") -> typer.Typer:
    """Makes the application. Leaves out the other commands if `wanted` is one of them, and all if it asks for help:
    reading their options takes as long as a small command."""
    cli = _group("", PURPOSE)
    cli.callback()(_root)
    commands = rooms.classes("onnxsmith.cli.commands", Command)
    chosen = {id_: one for id_, one in commands.items() if wanted in (id_, id_.partition("/")[0])} or commands
    groups: dict[str, typer.Typer] = {"": cli}
    if wanted in _HELP:
        chosen = {}
    for id_, command in chosen.items():
        family, _, name = id_.rpartition("/")
        if family not in groups:
            groups[family] = _family(family)
            cli.add_typer(groups[family], name=family)
        groups[family].command(
            name, cls=forgiving.Command, help=inspect.getdoc(command), context_settings={"obj": command}
        )(_function(command))
    return cli


def _family(name: str) -> typer.Typer:
    """Makes the group of the commands in a folder of the room, such as `baseline`."""
    return _group(name, inspect.getdoc(command_list.package(name)))


def _group(family: str, text: str | None) -> typer.Typer:
    """Makes a group of commands, with what its help says of them."""
    context = {"help_option_names": _HELP, "obj": partial(command_list.summaries, family)}
    return typer.Typer(cls=forgiving.Commands, help=text, context_settings=context, **_PLAIN)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"onnxsmith {__version__}")
        raise typer.Exit


def _usage(wanted: bool) -> None:
    if wanted:
        import json

        from onnxsmith.cli.usage_schema import usage

        typer.echo(json.dumps(usage(), indent=1, ensure_ascii=False))
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
    json_usage: Annotated[
        bool, typer.Option("--json-usage", callback=_usage, is_eager=True, help="print all commands as JSON")
    ] = False,
) -> None:
    """Has the options of the application itself."""


def _function(command: type[Command]) -> Callable[..., None]:
    """Makes a function whose parameters are the command's fields: typer reads options from a signature."""
    shared = command_parameters.shared(view=command.takes_view(), record=command.takes_record())

    def call(**values: Any) -> None:
        shown = {name: values.pop(name) for name in shared}
        pages = {name: shown.pop(name) for name in ("html", "view", "record") if name in shown}
        files = SideFiles(**pages, reports=tuple(shown.pop("report")))
        tupled = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        raise typer.Exit(_execute(_made(command, tupled), files, **shown))

    command_parameters.give(call, command, shared)
    return call


def _made(settings: type[T], values: Mapping[str, Any]) -> T:
    """Makes the dataclass, and the groups inside it, from the values of all fields."""
    given = {
        field.name: _made(field.metadata["settings"], values)
        if field.metadata["kind"] == "group"
        else values[called(field)]
        for field in dataclasses.fields(settings)  # type: ignore[arg-type]
    }
    return settings(**given)


_PIPE_WIDTH = 160
"""Width in columns of a report that goes into a file or a pipe. A choice: wide enough for the tables, narrow enough for
a diff."""


def _execute(command: Command, files: SideFiles, *, json: bool, verbose: bool, quiet: bool) -> int:
    if _process and command.is_one_pass():
        gc.disable()
    begin = _process.pop() if _process else time.monotonic()
    clock.command_begins()
    files, command = files.streamed(command)
    interruption, interrupted = Interruption(command), cast("Callable[[], bool]", bool)
    try:
        with interrupts.unwinding() as interrupted:
            report = _report(command, files, interruption, interrupted, shown=not json and not quiet)
        report = _with_waiting(report, begin)
        return _render(files.written(report, command), json=json, verbose=verbose, quiet=quiet)
    except BrokenPipeError:  # the reader closed the pipe early (`| head`); the command itself is done
        _discard_output()
        return report.verdict.exit_code
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 — a library that an interrupt left half imported fails in the report, too
        found = interruption.problem() if interrupted() else unexpected.problem_of(error, "the report")
        sys.stderr.write(f"{found}\n")
        return Verdict.FAILED.exit_code


def _report(
    command: Command, files: SideFiles, interruption: Interruption, interrupted: Callable[[], bool], *, shown: bool
) -> Report:
    """Runs the command and returns its report. An error becomes a report with the verdict `failed`."""
    start = time.monotonic()
    try:
        command.refuse()
        files.refuse_loss(command)
        start = time.monotonic()
        with _progress(enabled=shown), contextlib.redirect_stdout(sys.stderr), typed():
            report = files.run(command)  # prints of the user's model go to stderr, because stdout is for the report
            told = tuple(_typed(one, command) for one in report.problems)
            return dataclasses.replace(report, problems=told, notes=(*report.notes, *deprecated(command)))
    except KeyboardInterrupt as stop:
        found = interruption.problem(stop)
    except Exception as error:  # noqa: BLE001 — uncaught, Python would exit with 1, which means "different"
        if interrupted():  # a library that was being imported can turn KeyboardInterrupt into its own error
            found = interruption.problem()
        else:
            found = unexpected.problem_of(error, "the command")
            found = _typed(found, command)
    problems = [_tried(found, command, time.monotonic() - start)]
    if files.record:
        from onnxsmith.cli import record_option

        problems.append(record_option.not_written("the command failed"))
    return Report(command.name, Verdict.FAILED, problems=tuple(problems))


def _typed(found: Problem, command: Command) -> Problem:
    """Returns the problem with a fix in the words of this command line."""
    from onnxsmith.cli import verb_spelling

    return verb_spelling.typed_for(found, command)


def _tried(found: Problem, command: Command, seconds: float) -> Problem:
    """Returns the problem after its fix was tried, if that costs less than the failed run."""
    if not found.remedies:
        return found
    from onnxsmith.cli import fix_trial

    try:
        with contextlib.redirect_stdout(sys.stderr), typed():
            return fix_trial.tried(found, command, seconds, _given)
    except KeyboardInterrupt:  # the user does not want to wait for the trial; the error stands
        return found


def _given(command: type[Command], words: list[str]) -> dict[str, Any]:
    """Returns the values that words give to the options and arguments of a command; nothing if one is unknown."""
    parser: Any = typer.main.get_command(_build())
    for name in command.name.split():
        parser = parser.commands[name]
    context = parser.make_context(command.name, list(words), resilient_parsing=True)
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in context.params.items()
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }
    known = {text for one in parser.params for text in (*one.opts, *one.secondary_opts)}
    return values if all(word.partition("=")[0] in known for word in words if word.startswith("--")) else {}


def command(words: Sequence[str]) -> Command:
    """Returns the command that the words after `onnxsmith` give.

    Raises:
        OnnxsmithError: `record/unreadable` for words that give none.
    """
    kinds = {one.name: one for one in rooms.classes("onnxsmith.cli.commands", Command).values()}
    kind = next((kinds[name] for count in (2, 1) if (name := " ".join(words[:count])) in kinds), None)
    try:
        if kind is None:
            raise ValueError(f"there is no command {' '.join(words[:1])!r}")
        parser: Any = typer.main.get_command(_build(words[0]))
        for name in kind.name.split():
            parser = parser.commands[name]
        values = parser.make_context(kind.name, list(words[len(kind.name.split()) :])).params
    except Exception as error:
        why = getattr(error, "message", "") or str(error)
        raise problem("record/unreadable", "the record has no command", why=why, fix="check the record") from error
    return _made(kind, {name: tuple(one) if isinstance(one, list) else one for name, one in values.items()})


def run_quietly(command: Command) -> Report:
    """Runs a command, and returns its report, also if it fails."""
    with interrupts.unwinding() as interrupted:
        return _report(command, SideFiles(), Interruption(command), interrupted, shown=False)


def _with_waiting(report: Report, begin: float) -> Report:
    """Returns the report with the time since `begin` in its table of times."""
    if not any(part.kind() == "timing" for part in report.parts):
        return report
    from onnxsmith.base.report.parts.written_files import Timing

    parts = (Timing(clock.waited(one.seconds, begin)) if isinstance(one, Timing) else one for one in report.parts)
    return dataclasses.replace(report, parts=tuple(parts))


def _render(report: Report, *, json: bool, verbose: bool, quiet: bool) -> int:
    if json:
        sys.stdout.write(report.to_json() + "\n")
        sys.stdout.flush()  # a closed pipe fails here, where it is expected
        return report.verdict.exit_code
    from onnxsmith.cli.render import terminal

    failed_console = terminal.console(stderr=True)
    if report.verdict is Verdict.FAILED:
        for found in report.problems:
            terminal.show_problem(found, failed_console)
        if not report.parts:
            return report.verdict.exit_code
        report = dataclasses.replace(report, problems=())
    if not quiet:
        is_read = sys.stdout.isatty()
        terminal.show(report, terminal.console(None if is_read else _PIPE_WIDTH), whole=verbose, brief=is_read)
        return report.verdict.exit_code
    if report.verdict is Verdict.DONE and any(part.is_lossy for part in report.parts):
        terminal.console().print(one_line(report.headline), markup=False, highlight=False, soft_wrap=True)
    for found in report.problems:
        terminal.show_problem(found, failed_console)
    for line in (line for part in report.parts for line in part.failures()):
        failed_console.print(below(line), markup=False, highlight=False, soft_wrap=True)
    return report.verdict.exit_code


@contextmanager
def _progress(*, enabled: bool) -> Iterator[None]:
    """Shows progress on standard error after two seconds: a bar in a terminal, else a line for each stage."""
    from onnxsmith.cli.render import stage_lines

    if not enabled or os.environ.get(stage_lines.VARIABLE) == "none":
        yield
        return
    if not sys.stderr.isatty():
        with stage_lines.written(sys.stderr):
            yield
        return
    from onnxsmith.cli.render.progress import shown

    with shown():
        yield
