"""Checks that all verbs refuse the same planted faults, those of `faults.py`.

Each verb gets the wrong model as its candidate. `export` gets it as the captured graph, so that nothing is traced. Two
verbs promise something else. `quantize` changes numbers on purpose: it refuses changes that cost more of the score than
its budget. `bundle` replays golden data of the model in the client: it refuses a client that computes other outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.settings import Save, Verify
from onnxsmith.deployment.bundles.forms.python_runners import Python
from onnxsmith.deployment.checking import fix_application
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.fix_search import Fixed
from onnxsmith.editor import edit as editing
from onnxsmith.editor import edit_verification
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs.module_program import build
from onnxsmith.exporter.inputs.state_pairs import Carried
from onnxsmith.exporter.module_verification import ModuleAndGraph
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.structure.signature import signature
from onnxsmith.optimizer import faulty_rewrites, simplify
from onnxsmith.precision.methods.floats import _NarrowFloat
from onnxsmith.precision.pruning import proof
from onnxsmith.targets.judges.base import Refusal
from onnxsmith.verification.ladder import climbed
from onnxsmith.verification.verification_verdict import verdict
from tests.verification.faults import FAULTS, HIDDEN, Array, Fault

WIDE = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
NOTHING = Simplification(1, 1, 0, 0, (), (), 1)


def of_simplify(fault: Fault) -> Verdict:
    wrong = fault.model(wrong=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simplify, "_started", lambda *_: (lambda **_: (wrong, NOTHING), (), ()))
        patch.setattr(faulty_rewrites, "without_culprits", lambda *_: None)
        result = onnxsmith.simplify(fault.model())
    assert (result.model is None) == (result.report.verdict is not Verdict.DONE)
    return result.report.verdict


def of_edit(fault: Fault) -> Verdict:
    wrong = fault.model(wrong=True)
    verified = edit_verification.verified

    def of_wrong(work: Any, original: Any, _: Any, *settings: Any) -> Any:
        return verified(work, original, wrong, *settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(editing, "verified", of_wrong)
        result = editing.edited(fault.model(), None, lambda work: work.strip("docs"))
    assert (result.model is None) == (result.report.verdict is not Verdict.DONE)
    return result.report.verdict


def of_prune(fault: Fault) -> Verdict:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "masked", lambda model, *_: model)
        found = proof.proven(fault.model(), fault.model(wrong=True), {}, cast(Any, _Free()), None)
    return verdict(found)


class _Free:
    """The pruned channels of a model: none."""

    links = SimpleNamespace(products=())


def of_check(fault: Fault) -> Verdict:
    """Returns the verdict on a fix that the target accepts and that computes something else."""
    wrong, said = fault.model(wrong=True), list[str]()

    def fixed(_: Any, __: Any, ___: Any, good: Callable[[ir.Model], str], ____: Any) -> Fixed | None:
        said.append(good(wrong))
        return None if said[0] else Fixed(wrong, ("rewritten",))

    class Target:
        @contextmanager
        def judging(self) -> Iterator[None]:
            yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fix_application, "taken", lambda *_: (Refusal("it does not take it"), None))
        patch.setattr(fix_application, "fixed", fixed)
        patch.setattr(Subject, "static", None)
        change = fix_application.applied(
            {"target": cast(Any, Target())}, Subject(fault.model()), None, Verify(), Save()
        )
    if said[0]:
        assert change.model is None
        return Verdict.DIFFERENT
    return verdict(next(part for part in change.parts if isinstance(part, Verification)))


def of_compare(fault: Fault) -> Verdict:
    return onnxsmith.compare(fault.model(), fault.model(wrong=True)).report.verdict


def of_export(fault: Fault) -> Verdict:
    module, args = fault.module()
    ports = signature(fault.model())
    axes = {port.name: {0: "n"} for port in ports.inputs if port.shape and port.shape[0] == "n"}
    names = [port.name for port in ports.inputs]
    built = build(TorchModel(module, args), axes, input_names=names, output_names=["y"])
    subject = ModuleAndGraph.of(built, fault.model(wrong=True), Verify(), Carried())
    return verdict(climbed(subject, subject.compared()))


VERBS: dict[str, Callable[[Fault], Verdict]] = {
    "simplify": of_simplify,
    "edit": of_edit,
    "prune": of_prune,
    "check": of_check,
    "compare": of_compare,
    "export": of_export,
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_a_difference(fault: str, verb: str) -> None:
    assert VERBS[verb](FAULTS[fault]) is Verdict.DIFFERENT


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("fault", HIDDEN)
def test_a_fault_that_outputs_hardly_show_is_not_called_equal(fault: str, verb: str) -> None:
    assert VERBS[verb](HIDDEN[fault]) in (Verdict.DIFFERENT, Verdict.CANNOT_TELL)


@pytest.mark.parametrize("verb", ["edit", "compare", "export"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_right_model_is_equal(fault: str, verb: str) -> None:
    """Checks that the verbs accept a model without the fault. `edit` shares its comparison with `simplify`, `prune` and
    `check`."""
    assert VERBS[verb](replace(FAULTS[fault], wrong=FAULTS[fault].right, spoil={})) is Verdict.DONE


# Verbs that promise something else

SPOILT: dict[str, Callable[[Array], Array]] = {
    "": np.copy,
    "sign": np.negative,
    "order": np.flipud,
    "zero": np.zeros_like,
    "transposed": np.transpose,
}


def spoil(model: ir.Model, fault: str) -> ir.Model:
    """Changes the first weight of the model."""
    name, value = next(iter(model.graph.initializers.items()))
    assert value.const_value is not None
    value.const_value = ir.tensor(np.ascontiguousarray(SPOILT[fault](value.const_value.numpy())), name=name)
    return model


@pytest.mark.parametrize("fault", SPOILT)
def test_a_quantised_model_beyond_the_budget_is_refused(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def variant(self: _NarrowFloat, work: Any, keep: Any) -> ir.Model:
        return spoil(right(self, work, keep), fault)

    right = _NarrowFloat.variant
    monkeypatch.setattr(_NarrowFloat, "variant", variant)
    wide = Fault("y = MatMul(x, W)", lambda w, x: x @ w.W, inputs="float[n,64] x").model(held={"W": WIDE})
    result = onnxsmith.quantize(wide, tmp_path / "m.onnx", to="float16", measure_time=False, sizes={"n": 4})
    assert result.ok == (not fault)
    assert (tmp_path / "m.onnx").exists() == (not fault)


@pytest.mark.parametrize("fault", SPOILT)
def test_a_client_with_another_model_is_refused(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(self: Python, content: Any, folder: Path) -> None:
        write(self, content, folder)
        (file,) = folder.rglob("*.onnx")
        save(spoil(load(file), fault), file)

    write = Python.write
    monkeypatch.setattr(Python, "write", spoilt)
    save(FAULTS["weight-transposed"].model(), tmp_path / "m.onnx")
    result = onnxsmith.bundle(tmp_path / "m.onnx", tmp_path / "client", form="python")
    assert result.ok == (not fault)
    assert (tmp_path / "client").exists() == (not fault)
