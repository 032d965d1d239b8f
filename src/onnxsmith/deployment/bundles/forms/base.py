"""Defines a form of bundles: the models that it can hold, the files that it writes, and how its client replays the
golden data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from onnxsmith.base import rooms
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.deployment.bundles.content import Content

NUMBERS = (
    "float",
    "double",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)


class Form(ABC):
    """Defines one form; has no state. The id of a form is the value of `--for`."""

    client: ClassVar[str]
    """Is the readable name of the program that loads the bundle."""
    dtypes: ClassVar[tuple[str, ...]] = NUMBERS
    """Lists the dtypes of inputs and outputs that the client takes."""
    kinds: ClassVar[tuple[str, ...]] = ("tensor",)
    """Lists the kinds of inputs and outputs (`Port.kind`) that the client takes."""
    folders: ClassVar[tuple[str, ...]] = ()
    """Lists the options that name a folder of the client: `onnxruntime_root`, `node_modules`."""
    tasks: ClassVar[tuple[str, ...]] = ("tensors",)
    """Lists the tasks for which the form has processing."""
    takes_variants: ClassVar[bool] = False
    """Whether the form can hold several files, one for each execution provider (`--variant`)."""

    def model_file(self, name: str) -> str:
        """Returns the model's path inside the bundle called `name`."""
        return "model/model.onnx"

    def refuse(self, content: Content) -> None:
        """Raises if the form cannot hold the model.

        Raises:
            OnnxsmithError: `bundle/not-for-form`.
        """
        form = self.id()
        for port in (*content.inputs, *content.outputs):
            if port.kind not in self.kinds:
                raise not_for_form(form, f"{port.name!r} is not a tensor but a {port.kind}", f"{port.port}")
            if port.dtype not in self.dtypes:
                raise not_for_form(form, f"{port.name!r} has the dtype {port.dtype}", f"{port.port}")
        if content.task not in self.tasks:
            others = ", ".join(self.tasks)
            raise problem(
                "bundle/not-for-form",
                f"the form {form} has no processing for {content.task}",
                where=f"--for {form} --task {content.task}",
                why=f"the form supports {others}",
                fix=f"give --task {self.tasks[0]}, or choose another form: --for python",
            )

    def notes(self, content: Content) -> list[str]:
        """Returns sentences for the report about the client's limits."""
        return [
            f"--{name.replace('_', '-')} is not used by the form {self.id()}"
            for name in ({"onnxruntime": "onnxruntime_root"}.get(key, key) for key in content.clients)
            if name not in self.folders
        ]

    @abstractmethod
    def write(self, content: Content, folder: OwnPath) -> None:
        """Writes the form's files into the folder, which already has the model, golden data and interface.json."""

    @abstractmethod
    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        """Replays the golden data in the client, if the client is on this machine.

        Raises:
            OnnxsmithError: `bundle/client-failed` if the client is on this machine but cannot run the bundle.
        """

    @classmethod
    def id(cls) -> str:
        """Returns the form's name on the command line, which is the name of its module."""
        return rooms.own_name(cls, Form)


def not_for_form(form: str, what: str, where: str, *, why: str = "", fix: str = "") -> OnnxsmithError:
    """Returns the error that a form cannot hold a model with such an input or output."""
    return problem(
        "bundle/not-for-form",
        f"the form {form} cannot hold this model: {what}",
        where=where,
        why=why or "the client of this form does not support such a value",
        fix=fix or "choose the form with the fewest limits: --for python"
        if form != "python"
        else "cast the input or output to a dtype that numpy has: `onnxsmith edit`, step insert, operator Cast",
    )


# Finds a form by its name.


def form_of(name: str) -> Form:
    """Returns the form of this name.

    Raises:
        OnnxsmithError: `bundle/unknown-form`.
    """
    found = rooms.members("onnxsmith.deployment.bundles.forms", Form)
    if name not in found:
        near = near_names(name.lower().replace("_", "-").replace(".", "-"), found, 1, cutoff=0.4)
        raise problem(
            "bundle/unknown-form",
            f"there is no form {name!r}" if name else "no form was given",
            why=f"there are: {', '.join(found)}",
            fix=f"--for {near[0] if near else 'python'}",
        )
    return found[name]
