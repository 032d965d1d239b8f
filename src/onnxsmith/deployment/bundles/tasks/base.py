"""Defines a task of models: the interface that fits, and the processing that its bundles contain."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import Any, ClassVar

from onnxsmith.base import rooms
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.deployment.bundles.content import Content

PICTURES = ("image-classification", "super-resolution", "ocr")
TEXTS = ("text-classification", "text-generation")


class Task(ABC):  # noqa: B024 — `tensors` overrides nothing
    """Defines one task; has no state. The id of a task is the value of `--task`."""

    packages: ClassVar[tuple[str, ...]] = ()
    """Lists the Python packages that the processing needs in addition to numpy and onnxruntime."""
    uses: ClassVar[tuple[str, ...]] = ()
    """Lists the parameters that the processing reads."""

    def refuse_unused(self, content: Content) -> None:
        """Raises if a parameter was given that the processing does not read.

        Raises:
            OnnxsmithError: `bundle/settings`.
        """
        unused = [name for name in sorted(content.parameters.given) if name not in self.uses]
        if unused:
            takers = [name for name, one in tasks().items() if set(unused) <= set(one.uses)]
            reads = ", ".join(self.uses) or "no parameters"
            raise problem(
                "bundle/settings",
                f"--task {self.id()} does not use {', '.join(unused)}",
                where=f"--task {self.id()}" + ("" if content.task != "tensors" else ", the default"),
                why=f"this task reads only {reads}; other options would be ignored",
                fix="; or ".join(f"--task {one}" for one in takers) if takers else f"leave {', '.join(unused)} out",
            )

    def refuse(self, content: Content) -> None:  # noqa: B027 — the task `tensors` fits every model
        """Raises if the interface or the parameters do not fit.

        Raises:
            OnnxsmithError: `bundle/task-mismatch`, `bundle/no-tokenizer`.
        """

    def write_python(self, content: Content, folder: OwnPath) -> None:  # noqa: B027 — `tensors` has no processing
        """Writes processing.py and its golden data, if the task has processing."""

    def write_javascript(self, content: Content, folder: OwnPath) -> None:  # noqa: B027
        """Writes processing.mjs, if the task has processing."""

    def write_cpp(  # noqa: B027
        self, content: Content, folder: OwnPath, types: Mapping[str, Any]
    ) -> None:
        """Writes processing.hpp, if the task has processing; `types` are the element types of C++ by dtype."""

    def record(self, content: Content, folder: OwnPath) -> None:  # noqa: B027
        """Writes only the golden data of the processing, for clients that have processing of their own."""

    @classmethod
    def id(cls) -> str:
        """Returns the task's name on the command line, which is the name of its module."""
        return rooms.own_name(cls, Task)


def task(name: str) -> Task:
    """Returns the task of this name.

    Raises:
        OnnxsmithError: `bundle/unknown-task`.
    """
    found = tasks()
    if name not in found:
        near = [one for one in found if name in one] or near_names(name, found, 1)
        raise problem(
            "bundle/unknown-task",
            f"there is no task {name!r}",
            why=f"there are: {', '.join(found)}",
            fix="; or ".join(f"--task {one}" for one in near or ["tensors"]),
        )
    return found[name]


def tasks() -> dict[str, Task]:
    """Returns all tasks by name."""
    return rooms.members("onnxsmith.deployment.bundles.tasks", Task)


def mismatch(task_name: str, what: str, where: str, fix: str = "") -> OnnxsmithError:
    """Returns the error that a model's interface does not fit the task."""
    return problem(
        "bundle/task-mismatch",
        f"the model does not fit --task {task_name}: {what}",
        where=where,
        why="the generated processing would give the model unsuitable inputs",
        fix=fix or "leave --task out, and process the inputs yourself; or give the task that the model is for",
    )
