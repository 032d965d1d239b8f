"""Runs one call: the command line in a process of its own, under a limit of time."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxsmith.base import folders, unexpected
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.system import children
from onnxsmith.base.words import nearest
from onnxsmith.cli.tool_server.answers import Answer, failure, of_report
from onnxsmith.cli.tool_server.command_line import Permissions, command_line
from onnxsmith.cli.tool_server.root import Root
from onnxsmith.cli.tool_server.tools import Tool
from onnxsmith.fleet import step_process
from onnxsmith.fleet.row import Outcome, StepResult
from onnxsmith.runtimes import _web_package

_LINES = 5
"""Limits the lines of standard error that a problem shows. A choice: the last lines of a traceback."""
_MARK = "(not kept)"


@dataclass(frozen=True)
class Calls:
    """Runs calls of tools. `seconds` limits the time of each call, 0 for no limit."""

    tools: Mapping[str, Tool]
    root: Root
    permissions: Permissions
    seconds: float

    def run(self, name: str, given: Mapping[str, Any], watch: step_process.Watch) -> Answer:
        """Runs a call and returns its answer, also if it fails.

        Raises:
            StoppedError: `watch` was stopped.
        """
        tool = self.tools.get(name)
        if tool is None:
            near = nearest(name, self.tools)
            fix = f"call {near}" if near else f"call one of {', '.join(self.tools)}"
            return failure(name[:80], Problem("mcp/argument", f"there is no tool {name!r:.80}", fix=fix))
        try:
            with folders.temporary() as temporary:
                return self._answer(tool, given, watch, Path(os.path.realpath(temporary)))
        except step_process.StoppedError:
            raise
        except Exception as error:  # noqa: BLE001 — the SDK would hide what happened
            return failure(name, unexpected.problem_of(error, "the call"))

    def _answer(self, tool: Tool, given: Mapping[str, Any], watch: step_process.Watch, temporary: Path) -> Answer:
        outputs = temporary / "outputs"
        outputs.mkdir()
        line = command_line(tool, given, self.root, self.permissions, outputs)
        variables = {**children.HERE.temporary(str(temporary)), **environment(self.root, self.permissions)}
        try:
            result = step_process.run(
                tool.verb,
                line.words,
                python=sys.executable,
                folder=str(self.root.folder),
                seconds=self.seconds,
                memory=0,
                variables=variables,
                watch=watch,
            )
        finally:  # an ended process leaves its half-written file in a hidden folder
            for path in line.outputs:
                folders.clear((self.root.folder / path).parent)
        if result.outcome is Outcome.TIMEOUT or result.report is None:
            return failure(tool.verb, self._problem(result))
        is_written = line.unkept and result.report["verdict"] == Verdict.DONE
        report = _renamed(result.report, f"{outputs}{os.sep}") if line.unkept else result.report
        return of_report(report, removed=is_written, write=self.permissions.write)

    def _problem(self, result: StepResult) -> Problem:
        """Returns the problem of a process that gave no report."""
        if result.outcome is Outcome.TIMEOUT:
            return Problem(
                "mcp/time-limit",
                f"the call took longer than {self.seconds:g} seconds",
                where=result.headline,
                fix=f"request less work; or the user starts the server with --time-limit {max(self.seconds * 4, 60):g}",
            )
        said = [line for line in result.said.splitlines() if line.strip()][-_LINES:]
        return Problem(
            "mcp/no-report",
            f"the process of {result.verb} returned no report: {result.headline}",
            why="\n".join(said),
            fix="call the tool once more; if this happens again, the user runs the command in a terminal",
        )


def environment(root: Root, permissions: Permissions) -> dict[str, str]:
    """Returns the environment variables that keep Python and node from loading code of the folder."""
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]  # noqa: PTH100
    own = str(Path(step_process.__file__).parents[2])
    found = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(dict.fromkeys([own, *paths]))}
    if not permissions.code and not os.environ.get(_web_package.VARIABLE, "").strip():
        package = _web_package.package()
        is_own = package is not None and not Path(os.path.realpath(package)).is_relative_to(root.folder)
        found[_web_package.VARIABLE] = str(package) if is_own else os.devnull
    return found


def _renamed(data: Any, prefix: str) -> Any:
    """Returns the data with a mark in place of the temporary folder, which is gone when the answer is read."""
    if isinstance(data, str):
        return data.replace(prefix, f"{_MARK}/")
    if isinstance(data, list):
        return [_renamed(one, prefix) for one in data]
    if isinstance(data, dict):
        return {_renamed(key, prefix): _renamed(value, prefix) for key, value in data.items()}
    return data
