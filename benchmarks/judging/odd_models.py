"""Odd but valid models: what the specification allows, or runtimes take, and exporters seldom write.

    for name, path, feeds in odd_models(folder): …

Each is written into `folder`, with its data files. Whether onnxruntime runs one is for the caller to ask:
`runs(path, feeds)` does, with optimisation off and on. Run as a program it shows what the verbs make of all of them:

    PYTHONPATH=benchmarks python benchmarks/judging/odd_models.py [FOLDER] [--only PATTERN]
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from judging.odd import constants, interfaces, kinds, scopes, versions


class OddModel(NamedTuple):
    """A file, and one input set by name."""

    name: str
    path: Path
    feeds: Mapping[str, Any]


def odd_models(folder: Path) -> Iterator[OddModel]:
    """Writes every model into `folder`, one after the other."""
    seen: set[str] = set()
    for room in (versions, interfaces, constants, kinds, scopes):
        for odd in room.models():
            assert odd.name not in seen, odd.name
            seen.add(odd.name)
            for name, content in odd.files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            path = folder / f"{odd.name}.onnx"
            path.write_bytes(odd.model.SerializeToString())
            yield OddModel(odd.name, path, odd.feeds)


def runs(path: Path, feeds: Mapping[str, Any]) -> str:
    """Why onnxruntime does not run the model at some level of optimisation; "" where it runs at both.

    Asked in a process of its own, because native code may bring it down.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_try, args=(path, feeds, sender))
    process.start()
    sender.close()
    try:
        return str(receiver.recv())
    except EOFError:
        process.join()
        return f"onnxruntime died ({process.exitcode})"
    finally:
        process.join()


def _try(path: Path, feeds: Mapping[str, Any], answer: Any) -> None:
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    try:
        for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
            options = ort.SessionOptions()
            options.graph_optimization_level = level
            options.log_severity_level = 4
            session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            names = [output.name for output in session.get_outputs()]
            narrow = any(_is_narrow(port.type) for port in (*session.get_inputs(), *session.get_outputs()))
            if narrow:  # numpy has no such dtype, so that values go in and out unseen
                session.run_with_ort_values(names, {name: _unseen(ort, array) for name, array in feeds.items()})
            else:
                session.run(names, dict(feeds))
    except Exception as error:  # noqa: BLE001 — being refused is the answer
        answer.send(f"{type(error).__name__}: {error}")
    else:
        answer.send("")


def _is_narrow(kind: str) -> bool:
    return kind.startswith("tensor(") and any(word in kind for word in ("bfloat", "float8", "float4", "int4", "int2)"))


def _unseen(ort: Any, array: Any) -> Any:
    import onnx

    if array.dtype.kind != "V" and array.dtype.name in np.sctypeDict:
        return ort.OrtValue.ortvalue_from_numpy(array)
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    raw = array.view(np.uint16 if array.itemsize == 2 else np.uint8)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, kind)


def verbs(odd: OddModel, folder: Path) -> dict[str, Callable[[], Any]]:
    """What is asked of a valid model: no error may leave any of these."""
    import onnxsmith

    return {
        "inspect": lambda: onnxsmith.inspect(odd.path),
        "run": lambda: onnxsmith.run(odd.path, random=True).report,
        "run given": lambda: onnxsmith.run(odd.path, odd.feeds).report,
        "compare": lambda: onnxsmith.compare(odd.path, odd.path, thorough=True).report,
        "simplify": lambda: onnxsmith.simplify(odd.path, folder / "out" / odd.path.name).report,
        "dump": lambda: onnxsmith.dump(odd.path).report,
    }


def share_process() -> None:
    """Has all sessions of onnxruntime live in one process: a small model takes less time than the start of its own."""
    from onnxsmith.runtimes.base import Preparer
    from onnxsmith.runtimes.onnxruntime import OnnxRuntime

    shared = OnnxRuntime().preparer(keep=6)

    class Lent(Preparer):
        def prepare(self, *arguments: Any, **options: Any) -> Any:
            return shared.prepare(*arguments, **options)

        def close(self) -> None:
            pass

    OnnxRuntime.prepare = lambda self, source, options=None: shared.prepare(source, options)
    OnnxRuntime.preparer = lambda self, *, keep=1: Lent()


def main() -> None:
    """Shows who refuses what, and a count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--only", default="*")
    parser.add_argument("--part", default="1/1", help="2/3: every third model, from the second on")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    share_process()
    valid = 0
    refused: collections.Counter[str] = collections.Counter()
    away = set()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        (folder / "out").mkdir(parents=True, exist_ok=True)
        for number, odd in enumerate(odd_models(folder)):
            if number % parts != part - 1 or not fnmatch.fnmatch(odd.name, options.only):
                continue
            wrong = runs(odd.path, odd.feeds)
            if wrong:
                print(f"INVALID {odd.name}: {wrong.splitlines()[0][:200]}", flush=True)
                continue
            valid += 1
            for verb, said in said_by(odd, folder):
                print(f"{odd.name} {verb}: {said}", flush=True)
                if not said.startswith("VERDICT"):
                    refused[verb] += 1
                    away.add(odd.name)
    print(f"{valid} valid models, {len(away)} turned away by some verb: {dict(refused)}")


def said_by(odd: OddModel, folder: Path) -> Iterator[tuple[str, str]]:
    """What the verbs say that do not simply succeed: a VERDICT of their own, or that the model was REFUSED or CRASHED
    them."""
    from onnxsmith import OnnxsmithError

    for verb, ask in verbs(odd, folder).items():
        try:
            report = ask()
        except OnnxsmithError as error:
            yield verb, f"REFUSED {error.problem.id}: {error.problem.what} | {error.problem.why[:220]}"
        except Exception as error:  # noqa: BLE001 — counted, and the next one is asked
            yield verb, f"CRASHED {type(error).__name__}: {str(error)[:300]}"
        else:
            if report.verdict.exit_code:
                yield verb, f"VERDICT {report.verdict.value}: {report.headline}"


if __name__ == "__main__":
    main()
