"""`python -m onnxsmith`, and what the `onnxsmith` command calls.

Importing the command line takes a moment, in which nothing is begun that would have to be undone.
"""

from __future__ import annotations

import sys

from onnxsmith import interrupts


def main() -> None:
    """The entry point of the `onnxsmith` command."""
    interrupts.begin()
    try:
        from onnxsmith.cli import main as command_line
    except Exception as error:  # noqa: BLE001 — a limit on open files stops an import, too
        sys.stderr.write(f"onnxsmith could not be started: {type(error).__name__}: {error}\n")
        sys.exit(2)
    command_line()


if __name__ == "__main__":
    main()
