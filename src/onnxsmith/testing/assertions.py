"""The assertions: a module exports, two sides give the same answers, a model is not worse than recorded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onnxsmith.base import folders
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.testing import pages
from onnxsmith.testing.failure import raise_problem, raise_unless_done


def assert_exports(
    module: Any,
    args: Any,
    *,
    dynamic: Any = None,
    target: str | Sequence[str] = (),
    output: str | Path | None = None,
    **options: Any,
) -> Path | None:
    """Asserts that a torch module exports to a file that computes the same, and that every `target` runs the file.

    `module`, `args`, `dynamic` and `options` are those of `onnxsmith.export`, `target` those of `onnxsmith.check`. The
    file is written to `output`, whose absolute path is returned; without `output` it is removed again, and None
    returned. The file of a failed assertion stays beside the page of the failure.

    Raises:
        AssertionError: if the module does not export, the file differs from the module, or a target does not run it.
    """
    __tracebackhide__ = True
    from onnxsmith.deployment.checking.check import check
    from onnxsmith.exporter.export import export

    with _output(output) as (file, lines):
        more = {} if dynamic is None else {"dynamic": dynamic}
        try:
            exported = export(module, args, output=file, **more, **options).report
        except Exception as error:  # noqa: BLE001 — whatever stops an assertion fails it, with a problem
            raise_problem(error, more=lines)
        raise_unless_done(exported, more=lines)
        try:
            targets = [target] if isinstance(target, str) else list(target)
            checked = check(file, targets).report if targets else exported
        except Exception as error:  # noqa: BLE001 — as above
            raise_problem(error, more=lines)
        raise_unless_done(checked, {"MODEL": file}, lines)
        return None if output is None else file


@contextmanager
def _output(output: str | Path | None) -> Iterator[tuple[Path, list[str]]]:
    """Yields the path of the file that is exported, and the lines that a failure adds. Without `output`, the file of a
    failure stays beside its page; without a page it is removed."""
    page = pages.current() if output is None and pages.current is not None else None
    if output is not None:
        yield Path(output).absolute(), []  # the module may change the working folder
    elif page is None:
        with folders.temporary() as folder:
            yield folder / "model.onnx", ["the exported file is removed; keep it with output=…"]
    else:
        kept = page.with_suffix("")
        shutil.rmtree(kept, ignore_errors=True)  # of an earlier run
        kept.mkdir(parents=True)
        try:
            yield kept / "model.onnx", []
        except AssertionError:
            if not any(kept.iterdir()):
                kept.rmdir()
            raise
        shutil.rmtree(kept)


def assert_same(reference: Any, candidate: Any, inputs: Any = (), **options: Any) -> None:
    """Asserts that two sides give the same answers.

    A side is what `onnxsmith.compare` takes (a path, a model, `(module, args)`), a torch module, or a predict function:
    anything that is called with an input and returns an answer, pre- and post-processing included. `inputs` are those
    of `compare` for models. For predict functions they are a list: a tuple is the positional arguments of a call, a
    mapping its named ones, anything else the only argument. An array, a tensor, a text or a path in place of the list
    is one input, and so is a mapping from the parameters of the functions. Another mapping gives inputs names.

    Models are compared on generated inputs, too, with the tolerance that rounding explains. Answers of predict
    functions are compared by what they are: arrays relative to their largest magnitude (1e-4, in half precision 1e-2),
    boxes by their overlap (`overlap`, 0.99), scores by name and rank (1e-3), texts and all else by equality.
    `tolerance` replaces the limits of numbers; other `options` are those of `compare`.

    A comparison that could not have failed is no pass: the assertion also fails if the verdict is `cannot-tell`, such
    as for predict functions whose answers are the same for all inputs.

    Raises:
        AssertionError: if the sides differ, or the comparison cannot tell, or cannot be made.
    """
    __tracebackhide__ = True
    from onnxsmith.gate.same import same

    files = {"REFERENCE": reference, "CANDIDATE": candidate}
    try:
        report = same(reference, candidate, inputs=inputs, **options)
        if report.verdict is Verdict.DIFFERENT and any(one.id == "verify/different" for one in report.problems):
            report = same(reference, candidate, inputs=inputs, **{**options, "per_layer": True})
    except Exception as error:  # noqa: BLE001 — as above
        raise_problem(error, files)
    raise_unless_done(report, files)


def assert_not_worse(model: str | Path, baseline: str | Path, *, times: bool = False, **settings: Any) -> None:
    """Asserts that a model is not worse than its entry in a baseline, which `onnxsmith baseline record` wrote.

    The model runs on the recorded inputs. Its interface, numbers, size, nodes and the stages of its targets are
    compared with the recorded ones; its time and memory only with `times`, because tests share their machine with other
    tests.
    Further `settings` are those of the command: `allow_size`, `allow` (shares, 0.05 is 5%), `seconds`.

    A comparison that could not have failed is no pass: the assertion also fails if the verdict is `cannot-tell`, if the
    baseline or the model cannot be read, or if the baseline has no entry for the model.

    Raises:
        AssertionError: if the model is worse, or the comparison cannot tell, or cannot be made.
    """
    __tracebackhide__ = True
    from onnxsmith.gate.baselines.settings import Settings
    from onnxsmith.gate.baselines.verbs import check_one

    try:
        report = check_one(model, baseline, Settings(times=times, **settings))
    except Exception as error:  # noqa: BLE001 — as above
        raise_problem(error)
    raise_unless_done(report)
