"""Explains why torch.export could not trace a module, or torch.onnx could not translate the program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from torch.export import ExportedProgram

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.exporter.causes._message_text import line_in, plain, sentence
from onnxsmith.exporter.causes.base import recognise
from onnxsmith.exporter.factory import model_line, user_line
from onnxsmith.exporter.module import function_transforms
from onnxsmith.exporter.tracing.frozen_axes import Frozen, FrozenAxisError, fixed_by_the_model
from onnxsmith.exporter.tracing.size_branches import SizeBranch
from onnxsmith.exporter.tracing.trace import Tracing
from onnxsmith.exporter.translating import exporter_hooks, registered_failures
from onnxsmith.exporter.translating.missing_operators import error_of, shapeless, untranslated
from onnxsmith.runtimes.torch_eager import TorchProgram


def of_trace(error: Exception, program: TorchProgram, trace: Tracing) -> OnnxsmithError:
    """The problem of a trace that raised `error`."""
    if isinstance(error, OnnxsmithError):  # raised by a translation of this package
        return error if error.problem.where else error.at(model_line(error))
    registered = registered_failures.error_of(error, model_line(error))
    if registered is not None:
        return registered
    text = str(error)
    if trace.watch.frozen:
        return _frozen(trace.watch.frozen, program, tuple(trace.questions.found.values()))
    where = model_line(error) or line_in(text)
    lacking = shapeless(error, where)
    if lacking:
        return error_of(lacking)
    known = recognise(text, where)
    if known is not None and known.id == "export/object-input" and not _has_objects(program):
        known = None  # the message is about a tensor inside forward
    transformed = _transformed(error, known, program, where)
    if transformed is not None:
        return transformed
    if known is not None:
        return OnnxsmithError(known)
    return problem(
        "export/capture-failed",
        "torch.export could not trace the model",
        where=where,
        why=sentence(text),
        fix=f"rewrite {where} with tensor operations"
        if where
        else "move what is not part of the network out of forward: export a module that calls only the network",
    )


def _has_objects(program: TorchProgram) -> bool:
    """Whether an argument of forward holds something that is no tensor, number or text."""
    others = (leaf for leaf, name in zip(program.leaves, program.names, strict=True) if name is None)
    return any(not isinstance(leaf, bool | int | float | complex | str | type(None)) for leaf in others)


def _transformed(error: Exception, known: Problem | None, program: TorchProgram, where: str) -> OnnxsmithError | None:
    """Returns the problem of a trace that stopped in a derivative or in `vmap`, or that lost a tensor in it."""
    is_lost = known is not None and known.id == "forward/data-attribute"
    is_said = known is not None and known.id != "export/capture-failed"
    if not is_lost and (is_said or not function_transforms.stopped_in(error)):
        return None
    name = function_transforms.used_by(program.module)
    if not name:
        return None
    return problem(
        "forward/function-transform",
        f"torch.export cannot trace {name} here",
        where=where,
        why=f"{name} runs a function on tensors that it wraps, and the trace cannot look into wrapped tensors: "
        f"{sentence(str(error))}",
        fix="write this computation with tensor operations, or do it outside forward",
    )


def _frozen(found: Sequence[Frozen], program: TorchProgram, branches: Sequence[SizeBranch]) -> OnnxsmithError:
    first, others = found[0], [one for one in found if (one.port, one.axis) != (found[0].port, found[0].axis)]
    said = fixed_by_the_model(first, program, others)
    axes, lines = [(one.port, one.axis) for one in found], [one.line for one in found]
    return FrozenAxisError(said, axes, lines, branches)


def of_translation(error: Exception, exported: ExportedProgram) -> OnnxsmithError:
    """The problem of a translation that raised `error`."""
    cause: BaseException = error
    while cause.__cause__ is not None and not isinstance(cause, OnnxsmithError):
        cause = cause.__cause__
    if isinstance(cause, OnnxsmithError):  # raised by a translation
        return cause
    text = f"{error} {cause}"
    registered = registered_failures.error_of(error)
    if registered is not None:
        return registered
    known = recognise(text)
    if known is not None and known.id == "export/no-translation":
        found = untranslated(exported)
        return error_of(found, translated=exporter_hooks.targets()) if found else OnnxsmithError(known)
    if known is not None and known.id != "export/translation-failed":
        has_own = known.why != sentence(plain(text))
        return OnnxsmithError(known if has_own else replace(known, why=sentence(str(cause))))
    return _of_a_node(cause, text, exported)


_NODE = re.compile(r"Error when translating node %(\w+) .*?target=torch\.ops\.(\w+)\.(\w+)")


def _of_a_node(cause: BaseException, text: str, exported: ExportedProgram) -> OnnxsmithError:
    """The problem of an operator whose translation raised `cause`: one of torch, or the user's own."""
    named = _NODE.search(text)
    operator = f"{named[2]}::{named[3]}" if named else ""
    nodes = [node for node in exported.graph.nodes if named and node.name == named[1]]
    lines = [line_in(str(node.meta.get("stack_trace", ""))) for node in nodes]
    own = user_line(cause)
    fix = "write this line with other operators"
    if own:
        fix = f"correct the translation at {own}, or leave it out"
    elif operator:
        fix += f"; or compute the operator with other operators of PyTorch: @onnxsmith.register({operator!r})"
    return problem(
        "export/translation-failed",
        f"the translation of {operator} to ONNX failed" if operator else "torch.onnx could not translate the program",
        where=next(filter(None, lines), "") or line_in(text),
        why=sentence(str(cause)),
        fix=fix,
    )
