"""Renders the files of a bundle from the templates in the folder `templates/`, one template for each generated file."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from onnxsmith.base.folders import OwnPath
from onnxsmith.deployment.bundles import identifiers


def render(template: str, **values: Any) -> str:
    """Returns the text of a template, named by its path: `python/model.py`.

    Nothing is escaped automatically: a template writes texts from the model through the filters `py`, `js`, `c` and
    `md`.
    """
    return _environment().get_template(template).render(**values)


def write(folder: OwnPath, name: str, template: str, **values: Any) -> None:
    """Writes the text of a template to a file of a folder, with the same line ends on every system."""
    (folder / name).write_bytes(render(template, **values).encode())


def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_source),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the files are programs, not pages
    )
    environment.filters |= {
        "py": _python,
        "js": identifiers.javascript,
        "c": identifiers.c,
        "md": identifiers.markdown,
    }
    return environment


def _python(value: Any) -> str:
    """Returns a Python literal for texts, numbers, None, and tuples of them."""
    if isinstance(value, tuple | list):
        inner = ", ".join(_python(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return identifiers.python(value) if isinstance(value, str) else repr(value)


def _source(name: str) -> str:
    return files("onnxsmith.deployment.bundles").joinpath("templates", f"{name}.jinja").read_text(encoding="utf-8")
