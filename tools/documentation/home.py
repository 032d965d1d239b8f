"""Writes the home page: what onnxsmith is, how to install it, and the commands by situation."""

from __future__ import annotations

from tools.documentation.markdown import fenced
from tools.documentation.reference import commands

_TEXT = """\
# onnxsmith

onnxsmith turns a PyTorch model into an ONNX model that can be trusted: the result of every step is compared with the
model before it, and a file is written only if the two agree. If an edit changes an output on purpose, this output is
not compared, and the report names it.

## Install

{install}

`cpu` installs ONNX Runtime, which runs models. `torch` installs what exporting needs; a machine that only checks,
changes or runs ONNX files can do without it. onnxsmith needs Python 3.11 or later;
[Platforms](platforms.md) lists systems and versions.

## How to …

[How to …](how_to/index.md) has a page for each question, with commands to paste.

## Commands

Most commands are also [functions of Python](reference/python.md). A problem that a command reports has an id, and
[a page](reference/problems/index.md) with its causes and what helps.

{commands}
"""
_INSTALL = 'pip install "onnxsmith[cpu,torch]"'


def page() -> str:
    """Returns the home page."""
    return _TEXT.format(install=fenced(_INSTALL, "sh"), commands=commands.by_situation("reference/commands/", level=3))
