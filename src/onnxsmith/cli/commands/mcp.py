"""`onnxsmith mcp [FOLDER]`."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Mcp(Command):
    """Serve commands as tools to an agent, over the Model Context Protocol (MCP) on standard input and output.

    The tools are export, simplify, compare, inspect, explain, op, diff and check. They read files in FOLDER only, and
    keep no file unless --write is given. A client starts this command, which ends when the client disconnects.
    """

    name = "mcp"
    usual_line = "onnxsmith mcp"
    examples = (
        ("Let the agent write models into a folder", "onnxsmith mcp models --write"),
        ("Let it export a module that you trust", "onnxsmith mcp --write --allow-code"),
    )

    folder: str = argument(
        "the only folder whose files are used; default: the current folder", default=".", metavar="FOLDER"
    )
    write: bool = flag("keep the files that calls write")
    allow_code: bool = flag(
        "run Python files: export, and file.py:factory in compare; code is not restricted to FOLDER"
    )
    time_limit: float = option("seconds that a call may take, 0 for no limit", default=600.0, metavar="SECONDS")

    def refuse(self) -> None:
        import os
        from importlib.util import find_spec

        from onnxsmith.base.limits import refuse_seconds
        from onnxsmith.base.problem import problem

        refuse_seconds(self.time_limit)
        if not os.path.isdir(self.folder):  # noqa: PTH112 — pathlib would take as long as the rest
            raise problem(
                "mcp/no-folder",
                "the folder to serve does not exist",
                where=self.folder,
                fix="give the path of a folder",
            )
        if find_spec("mcp") is None:
            raise problem(
                "mcp/not-installed",
                "the SDK of the Model Context Protocol is not installed",
                fix='`pip install "onnxsmith[mcp]"`',
            )

    def run(self) -> Report:
        from pathlib import Path

        from onnxsmith.base.report.verdict import Verdict
        from onnxsmith.base.system import standard_output
        from onnxsmith.base.words import several
        from onnxsmith.cli.tool_server.command_line import Permissions
        from onnxsmith.cli.tool_server.root import Root
        from onnxsmith.cli.tool_server.server import serve

        root = Root(Path(self.folder).resolve())
        permissions = Permissions(self.write, self.allow_code)
        kept = "keeps files" if self.write else "read-only"
        code = ", runs Python code" if self.allow_code else ""
        print(f"onnxsmith mcp: {root.folder}, {kept}{code}; waits for a client on standard input", file=sys.stderr)  # noqa: T201
        count = serve(root, permissions, self.time_limit, standard_output.take())
        return Report(self.name, Verdict.DONE, headline=f"{several(count, 'call')}; the client has left")
