"""Compares what files declare with what they give: dtypes and shapes of outputs and of kept intermediate values.

    pytest --tier=first --written=FOLDER        # keeps every model that a verb writes in a test
    python benchmarks/declarations.py FOLDER … [--verbose]

FOLDER may hold any `.onnx` files. Each is run by onnxruntime, or by onnx's reference evaluator where onnxruntime
refuses it, on generated inputs of two sizes, with every declared value as an output. A size must be the declared one; a
name must have the size that the inputs, or its first use, give it in the run. Prints what differs, then the counts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnx_ir as ir

from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes._dtypes import name_of
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.run import planned

LARGEST = 100_000_000
"""Limits the bytes of a file that is run."""
SECONDS = 10
"""Limits the time for a file."""
SIZES = (0, 2)
"""Names what is added to the size of each symbolic dimension in a run, besides its place."""


def differences(path: Path) -> tuple[int, list[str]]:
    """Returns how many declared values were compared, and what differs. Raises the runtime's error if none runs it."""
    model = onnx.load(path, load_external_data=False)
    model_ir = ir.load(path)
    interface = signature(model_ir)
    declared = {one.name: one.type for one in (*model.graph.output, *model.graph.value_info) if _is_dense(one.type)}
    known = {one.name for one in model.graph.output}
    made = {name for node in model.graph.node for name in node.output}
    model.graph.output.extend(
        one for one in model.graph.value_info if one.name in declared and one.name in made and one.name not in known
    )
    compared, wrong, error = 0, dict[str, str](), None
    for more in SIZES:
        asked = {name: index + more for index, name in enumerate(dims.symbols(interface))} if more else {}
        try:
            plan = planned(model_ir, interface, asked, seed=more)
            feed = plan.generator.feed(dict(plan.start or {}), seed=more).values
            outputs = _run(model, path.parent, feed)
        except Exception as raised:  # noqa: BLE001 — the reference evaluator raises anything
            error = error or raised
            continue
        sizes = dict(of_feed(interface, feed))
        for name, value in outputs.items():
            if name in declared and isinstance(value, np.ndarray):
                compared += 1
                if said := _difference(declared[name].tensor_type, value, sizes):
                    wrong[name] = said
    if not compared and error is not None:
        raise error
    return compared, [f"{name}: {said}" for name, said in wrong.items()]


def _is_dense(kind: onnx.TypeProto) -> bool:
    return kind.HasField("tensor_type")


def _run(model: onnx.ModelProto, folder: Path, feed: Mapping[str, Any]) -> dict[str, Any]:
    import onnxruntime
    from onnx.external_data_helper import load_external_data_for_model
    from onnx.reference import ReferenceEvaluator

    names = [one.name for one in model.graph.output]
    try:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return dict(zip(names, session.run(names, dict(feed)), strict=True))
    except Exception:  # noqa: BLE001 — onnxruntime has no common class of errors
        whole = onnx.ModelProto()
        whole.CopyFrom(model)
        load_external_data_for_model(whole, str(folder))
        return dict(zip(names, ReferenceEvaluator(whole).run(names, dict(feed)), strict=True))


def _difference(declared: onnx.TypeProto.Tensor, value: np.ndarray[Any, Any], sizes: dict[str, int]) -> str:
    """Says how an array differs from its declaration; "" if it does not. A new name gets its size in `sizes`."""
    dtype = "string" if value.dtype.kind in "OUS" else name_of(value.dtype)
    named = onnx.TensorProto.DataType.Name(declared.elem_type).lower()
    if declared.elem_type and not _is_same(named, dtype):
        return f"declared {named}, is {dtype}"
    if not declared.HasField("shape"):
        return ""
    axes = [_dim(dim) for dim in declared.shape.dim]
    shown = f"declared {axes}, is {list(value.shape)}"
    if len(axes) != value.ndim:
        return shown
    for axis, size in zip(axes, value.shape, strict=True):
        expected = dims.evaluate(axis, sizes)
        if expected is None and isinstance(axis, str) and axis.isidentifier():
            sizes[axis] = size
        elif expected is not None and expected != size:
            return f"{shown} at {sizes}"
    return ""


def _is_same(named: str, dtype: str) -> bool:
    same = {"float": "float32", "double": "float64"}
    return same.get(named, named) == same.get(dtype, dtype)


def _dim(dim: Any) -> int | str | None:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None


def within_limit(path: Path) -> tuple[int, list[str]] | str:
    """Returns the differences, or why the file was not run. A process of its own runs it: a loop may not end, and a
    runtime may crash."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_answer, args=(path, there))
    process.start()
    told = here.recv() if here.poll(SECONDS) else f"no answer within {SECONDS} s"
    process.kill()
    process.join()
    return cast("tuple[int, list[str]] | str", told)


def _answer(path: Path, there: Connection) -> None:
    try:
        there.send(differences(path))
    except Exception as error:  # noqa: BLE001 — a file that nothing runs is counted
        there.send((str(error) or type(error).__name__).splitlines()[0])


def files(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(path for path in folder.rglob("*.onnx") if path.is_file())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--verbose", action="store_true", help="names the files that were not run")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    counts = Counter[str]()
    for path in files(given.folder):
        if path.stat().st_size > LARGEST:
            counts["too large"] += 1
            continue
        told = within_limit(path)
        if isinstance(told, str):
            counts["not run"] += 1
            if given.verbose:
                print(f"not run: {path}: {told[:150]}")
            continue
        compared, wrong = told
        counts["files"] += 1
        counts["values"] += compared
        counts["files that differ"] += bool(wrong)
        for said in wrong:
            print(f"{path}: {said}")
    print(
        f"{counts['files']} files, {counts['values']} declared values: {counts['files that differ']} files differ; "
        f"{counts['not run']} not run, {counts['too large']} too large"
    )
    return bool(counts["files that differ"])


if __name__ == "__main__":
    sys.exit(main())
