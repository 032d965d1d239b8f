"""Lists the operations of a torch model (of torch.export or TorchScript) beside the nodes of an ONNX model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnxsmith.base import user_files
from onnxsmith.base.clock import stage
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.capture import Program, ProgramLine
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import pasted, several
from onnxsmith.exporter import factory
from onnxsmith.graph.files.load import TEXT_SUFFIXES, load, near_files
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.reading.program_lines import beside
from onnxsmith.runtimes import base as runtimes

_HIDDEN = {"prim::Constant", "prim::GetAttr", "prim::ListConstruct", "prim::TupleConstruct"}
"""Names operations of TorchScript that compute nothing."""


def is_torch(source: str) -> bool:
    """Whether a text names a torch model: `file.py:factory`, a `.pt2`, a `.pt` or a `.pth`."""
    path = Path(source)
    if path.suffix in (".pt2", ".pt", ".pth"):
        return True
    return factory.is_target(source) and path.suffix not in (".onnx", *TEXT_SUFFIXES) and not path.exists()


@identifies("onnx")
def program_report(source: str, onnx: str | None = None) -> Report:
    """Reports on the program of a torch model, and if `onnx` is given, on that model's nodes for each line.

    A `.pt2` is shown as it is, a `.pt` or `.pth` is a TorchScript file. The module that a factory returns is traced by
    torch.export on its example inputs; a scripted module is shown as TorchScript. Nothing is written.

    Raises:
        OnnxsmithError: `inspect/program-unreadable`, `compare/program`, `export/target-…`; what `load` raises.
    """
    runtimes.get("torch-eager")  # raises a problem that says what to install if torch is missing
    model = None if onnx is None else load(onnx)
    with stage("trace"):
        origin, lines = _program(source)
    part = Program(origin, tuple(lines), (), False) if model is None else beside(origin, lines, model)
    headline = f"{source}: {several(len(part.lines), 'line')} of {origin}"
    if model is not None:
        headline += f", {several(part.paired, 'node')} of {Path(str(onnx)).name} shown beside the lines"
    return Report("inspect", Verdict.DONE, parts=(part,), headline=headline)


def _program(source: str) -> tuple[str, list[ProgramLine]]:
    import torch

    path = Path(source)
    if path.suffix in (".pt2", ".pt", ".pth") and not path.is_file():
        near = near_files(path) or f"check the path; relative paths start at {Path.cwd()}"
        raise _unreadable(source, "there is no such file", near)
    if path.suffix == ".pt2":
        from onnxsmith.exporter.tracing.exported_program import read

        return "torch.export", list(_exported_lines(read(path)))
    if path.suffix in (".pt", ".pth"):
        return "TorchScript", list(_script_lines(_scripted(path)))
    model = factory.load(source)
    if isinstance(model.module, torch.jit.ScriptModule):
        return "TorchScript", list(_script_lines(model.module))
    return "torch.export", list(_exported_lines(_traced(model, source)))


def _scripted(path: Path) -> Any:
    import torch

    from onnxsmith.exporter.tracing.torch_logging import quiet

    try:
        with quiet(), user_files.opened(path) as file:
            return torch.jit.load(file, map_location="cpu")  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError, OSError) as error:
        fix = (
            f"for a file of weights, write a function that builds the module, loads {path.name} and returns the "
            "module with example inputs, then give FILE.py:FUNCTION; for a TorchScript module, write the file with "
            f"torch.jit.save(torch.jit.script(module), {str(path)!r})"
        )
        raise _unreadable(str(path), f"{type(error).__name__}: {error}"[:300], fix) from error


def _traced(model: factory.TorchModel, source: str) -> Any:
    """Traces a module as `export` does, so that the operations have the names that the model's metadata record."""
    from onnxsmith.exporter.inputs import module_program as programs
    from onnxsmith.exporter.module.evaluation import evaluating
    from onnxsmith.exporter.tracing.on_cpu import on_cpu
    from onnxsmith.exporter.tracing.trace import tracing

    model = on_cpu(model)
    with evaluating(model.module):
        built = programs.build(model, {})
        try:
            with tracing(built.program, built.example) as trace:
                return trace.exported()
        except Exception as error:
            raise problem(
                "inspect/program-unreadable",
                "torch.export cannot trace the module",
                where=factory.user_line(error) or source,
                why=f"{type(error).__name__}: {error}"[:300],
                fix=f"`onnxsmith diagnose {pasted(source)}`",
            ) from error


def _unreadable(where: str, why: str, fix: str) -> Exception:
    return problem(
        "inspect/program-unreadable",
        "the file has no program that can be shown",
        where=where,
        why=why,
        fix=fix,
    )


def _exported_lines(exported: Any) -> Iterator[ProgramLine]:
    """Yields the calls in the graph of a program of torch.export."""
    from onnxsmith.exporter.tracing.flat_module import own_name
    from onnxsmith.graph.reading.program_lines import shortened
    from onnxsmith.graph.structure import provenance

    for node in exported.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        trace = node.meta.get("stack_trace") or ""
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        module = own_name(str(stack[-1][0])) if stack else ""
        text = shortened(node.format_node() or node.name)
        yield ProgramLine(node.name, text, provenance.user_line(trace), provenance.code_of(trace), module, 0, ())


def _script_lines(module: Any) -> Iterator[ProgramLine]:
    """Yields the operations of a TorchScript module, with the modules inside it inlined, and the blocks of branches and
    loops after their owner."""
    from onnxsmith.graph.structure import provenance

    graph = module.inlined_graph  # a new graph: keep it, because its nodes live only as long as it does
    pending = [(node, 0) for node in graph.nodes()][::-1]
    while pending:
        node, depth = pending.pop()
        inner = [child for block in node.blocks() for child in block.nodes()]
        pending += [(child, depth + 1) for child in reversed(inner)]
        if node.kind() in _HIDDEN:
            continue
        text = str(node).partition("\n")[0].partition(" # ")[0].strip().removeprefix("= ")
        name = next((value.debugName() for value in node.outputs()), "")
        scope = node.scopeName().rpartition("/")[2].removeprefix("__module").removeprefix(".")
        place = provenance.user_line(provenance.as_trace(node.sourceRange()))
        yield ProgramLine(name, text.partition(", scope: ")[0], place, "", scope, depth, ())
