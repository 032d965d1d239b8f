"""Reads the options of verbs in a plan as the command line would, before any cell runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from onnxsmith.cli.commands.base import Command

if TYPE_CHECKING:
    from onnxsmith.fleet.steps import Mistake


def refuse_wrong_options(plan: str) -> None:
    """Raises if a verb of the plan does not take its options, so that the step would fail in every cell.

    Raises:
        OnnxsmithError: `fleet/plan`, and the errors of reading the plan.
    """
    from onnxsmith.fleet import plan_reader

    plan_reader.read(plan, _mistake)


def _mistake(verb: str, words: Sequence[str]) -> Mistake | None:
    """Returns why the command line refuses the words behind a verb; None if it takes them."""
    from onnxsmith.base.words import nearest
    from onnxsmith.fleet.steps import Mistake

    parser = _parser(verb)
    try:
        parser.make_context(verb, list(words))
    except Exception as error:  # noqa: BLE001 — typer has its own copies of click's errors, and none of them is public
        listed = f"`onnxsmith {verb} --help` lists the options"
        if type(error).__name__ == "NoSuchOption":
            wrong = str(getattr(error, "option_name", ""))
            names = [name for one in parser.params for name in (*one.opts, *one.secondary_opts) if name[:2] == "--"]
            near = nearest(wrong.strip("-"), [name.strip("-") for name in names])
            fix = f"write '--{near}' in place of '{wrong}'; {listed}" if near else f"leave '{wrong}' out; {listed}"
            return Mistake(f"{verb} has no option {wrong}", "", fix)
        why = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
        if type(error).__name__ == "MissingParameter":
            fix = f'write it as the options of {verb}: {verb} = "…"; {listed}'
            return Mistake(f"an argument of {verb} is missing", why, fix, is_missing=True)
        return Mistake(f"{verb} does not accept these options", why, f"correct them; {listed}")
    return None


@cache
def _parser(verb: str) -> Any:
    """Returns the parser of a verb's command line."""
    import typer

    from onnxsmith.base import rooms
    from onnxsmith.cli import command_parameters, forgiving

    command = rooms.classes("onnxsmith.cli.commands", Command)[verb.replace(" ", "/")]
    shared = command_parameters.shared(view=command.takes_view(), record=command.takes_record())

    def call(**values: Any) -> None:
        """Has the parameters of the command, and does nothing."""

    command_parameters.give(call, command, shared)
    line = typer.Typer()
    line.command(verb, cls=forgiving.Command)(call)
    return typer.main.get_command(line)
