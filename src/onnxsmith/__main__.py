"""Starts the command line, for `python -m onnxsmith` and for the `onnxsmith` command.

While the command line is being imported, Ctrl-C may end the process at once: nothing needs cleaning up yet.
"""

from __future__ import annotations

import gc
import sys

from onnxsmith.base import deferred_imports, interrupts
from onnxsmith.base.system import standard_output


def main() -> None:
    """The entry point of the `onnxsmith` command."""
    standard_output.open_closed()
    interrupts.begin()
    deferred_imports.begin()
    try:
        from onnxsmith.base.clock import process_began
        from onnxsmith.cli.application import main as command_line
    except Exception as error:  # noqa: BLE001 — a limit on open files stops an import, too
        sys.stderr.write(f"onnxsmith could not be started: {type(error).__name__}: {error}\n")
        sys.exit(2)
    try:
        command_line(process_began())
    finally:
        gc.freeze()  # the system frees the process's memory at once; Python's last collections would visit each object


if __name__ == "__main__":
    main()
