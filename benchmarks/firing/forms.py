"""What is done with one model: exported, simplified, converted to older opsets, checked for targets."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from firing.members import Note, noted
from onnxsmith.base.problem import OnnxsmithError

OPSETS = (9, 13, 17)
"""The opsets to which files are converted, the first that works; a choice: those that older runtimes read."""
NEWER = 24
"""The opset that has Attention, RMSNormalization, RotaryEmbedding and Swish."""
TARGETS = ("onnxruntime", "openvino")
"""The targets that are asked: those whose software can be installed beside onnxsmith."""
REPLACED = "replaced lines"
"""Stands for a room in the notes about lines that an export replaced."""
EXPORTING = (
    "exporter.strategies", "exporter.rewrites", "exporter.translations", "exporter.causes", "graph.surgery.lowerings",
)  # fmt: skip


Keep = Callable[[set[Note]], None]
"""Takes the notes of a form at once, so that a later error loses none."""


def exported(
    keep: Keep, module: Any, args: Sequence[Any], kwargs: dict[str, Any], dynamic: Any, *, verify: bool,
    opset: int | None = None,
) -> None:  # fmt: skip
    """Exports a module by `onnxsmith.export`; then as `of_file` for the result, and what the linter says about the
    module's source. Verification decides between strategies, so some serve only with it."""
    import onnxsmith

    with tempfile.TemporaryDirectory(prefix="fired-") as folder:
        path = Path(folder) / "model.onnx"
        notes: set[Note] = set()
        try:
            with contextlib.suppress(OnnxsmithError), noted(*EXPORTING) as notes:
                result = onnxsmith.export(
                    module, args, kwargs, output=path, dynamic=dynamic, opset=opset, simplify=False, verify=verify
                )
                keep(set(served(result.report)))
        finally:
            keep(notes)
        if path.exists():
            keep(of_file(path))
    keep(linted(module, args, kwargs))


_FORMS = {"def block": "while_loop", ".scan(": "scan", ".vmap(": "vmap", ".where(": "where"}
"""Parts of the lines that replace others; the report cuts long ones, so that of a loop only the beginning is there."""


def served(report: Any) -> Iterator[Note]:
    """Yields the strategy whose graph was written, and the lines that it replaced."""
    from firing.members import ROOMS
    from onnxsmith.base.report.parts.capture import Capture

    part = next((part for part in report.parts if isinstance(part, Capture)), None)
    room = next(room for room in ROOMS if room.package == "exporter.strategies")
    if part is None:
        return
    fitting = [(len(kind.title), id_) for id_, kind in room.classes().items() if part.how.startswith(kind.title)]  # type: ignore[attr-defined]
    if fitting:
        yield room.package, max(fitting)[1], "served"
    for note in part.notes:
        for text, word in _FORMS.items():
            if " was traced as: " in note and text in note:
                yield REPLACED, word, "served"


def linted(module: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> set[Note]:
    """Lets the linter read every function that forward reaches, in packages too."""
    from onnxsmith.exporter.factory import TorchModel, is_models
    from onnxsmith.exporter.module import source_linting
    from onnxsmith.exporter.module.run_observation import observe

    with noted("exporter.lint") as found, contextlib.suppress(Exception):
        model = TorchModel(module, tuple(args), dict(kwargs))
        calls = observe(model).calls
        is_users = lambda file: is_models(file) and file.endswith(".py")  # noqa: E731
        source_linting.read(module, calls, {}, is_users)
    return found


def of_file(path: Path) -> set[Note]:
    """Simplifies the file by every rule, and converts it to an older opset."""
    from onnxsmith.graph.files.load import load

    try:
        model = load(path)
    except OnnxsmithError:
        return set()
    return simplified(model) | lowered(model)


def simplified(model: Any) -> set[Note]:
    """Simplifies by the default rules and those for ONNX Runtime, then by those that run only if they are named; also
    at a newer opset, which has more operators to make."""
    from onnxsmith.base import rooms
    from onnxsmith.graph.surgery import opset_conversion
    from onnxsmith.optimizer import simplification_rounds
    from onnxsmith.optimizer.rules.base import Rule

    rules = rooms.members("onnxsmith.optimizer.rules", Rule)
    named = [id_ for id_, rule in rules.items() if rule.slower]
    found: set[Note] = set()
    for opset in (None, NEWER):
        with contextlib.suppress(OnnxsmithError), noted("optimizer.rules") as notes:
            form = opset_conversion.convert(model, opset)
            usual, _ = simplification_rounds.simplified(form, contrib=True, target="onnxruntime")
            simplification_rounds.simplified(usual, only=named, contrib=True)
        found |= notes
    return found


def lowered(model: Any) -> set[Note]:
    """Converts to the oldest opset to which the model can be converted."""
    from onnxsmith.graph.surgery import opset_conversion

    for opset in OPSETS:
        if opset < opset_conversion.of(model):
            with contextlib.suppress(OnnxsmithError), noted("graph.surgery.lowerings") as notes:
                opset_conversion.convert(model, opset)
                return notes
    return set()


def checked(path: Path) -> set[Note]:
    """Asks targets about the file; a fix counts if the report's form of the model needs it."""
    from onnxsmith.base.report.parts.target_checks import TargetChecks
    from onnxsmith.deployment.checking.check import check

    with noted("deployment.checking.fixes") as notes:
        try:
            report = check(path, TARGETS).report
        except OnnxsmithError:
            return set()
    said = " ".join(one.rewrite for part in report.parts if isinstance(part, TargetChecks) for one in part.checks)
    return {(room, id_, "fired" if step in said else "tried") for room, id_, step in notes}
