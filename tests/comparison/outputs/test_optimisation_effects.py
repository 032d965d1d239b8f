"""Outputs that differ only because a runtime optimises: no layer is to blame, and the report says what is."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.runtimes.base import Session
from tests.comparison.outputs.test_causes import ALPHA, model

LEVELS = ("disable", "basic", "extended", "all")


class Fusing(Session):
    """A session whose optimised kernels are off by a factor, from a level on."""

    def __init__(self, inner: Session, level: str, *, since: str = "extended", factor: float = 1.1) -> None:
        self._inner, self._level, self._since, self._factor = inner, level, since, factor
        self.signature, self.provider = inner.signature, inner.provider

    def at(self, level: str) -> Session:
        return Fusing(self._inner.at("disable"), level, since=self._since, factor=self._factor)

    def run(self, feeds: Any) -> Any:
        is_fused = LEVELS.index(self._level) >= LEVELS.index(self._since)
        found = self._inner.run(feeds)
        return {name: np.asarray(value * np.float32(self._factor if is_fused else 1)) for name, value in found.items()}


@pytest.fixture
def fusing(monkeypatch: pytest.MonkeyPatch) -> list[onnx.ModelProto]:
    """The models whose runtime fuses nodes into a wrong kernel."""
    chosen: list[onnx.ModelProto] = []
    prepare = SideSource.prepare

    def prepared(side: SideSource) -> Session:
        session = prepare(side)
        held = side.model is not None and any(side.model.producer_name == one.producer_name for one in chosen)
        return Fusing(session, side.options.optimization) if held else session

    monkeypatch.setattr(SideSource, "prepare", prepared)
    return chosen


def named(text: str, *args: Any) -> onnx.ModelProto:
    made = model(*args)
    made.producer_name = text
    return made


def test_an_optimisation_is_named_and_no_layer(fusing: list[onnx.ModelProto]) -> None:
    candidate = named("candidate")
    fusing.append(candidate)
    result = onnxsmith.compare(named("reference"), candidate, per_layer=True)
    layers = result.report.part(Layers)
    assert result.report.verdict is Verdict.DIFFERENT
    assert layers.culprits == ()
    assert "without the runtime's optimisations, outputs change: then y agrees" in layers.exposed
    assert "the likely cause is an optimisation" in layers.exposed
    assert "from level extended on: it changes y by 0.061 of its scale" in layers.exposed
    assert layers.exposed in result.report.headline
    assert not any(one.id == "compare/first-error" for one in result.report.problems)


def test_a_fault_that_an_optimisation_does_not_make_is_blamed(fusing: list[onnx.ModelProto]) -> None:
    candidate = named("candidate", ALPHA)
    fusing.append(candidate)
    layers = onnxsmith.compare(named("reference"), candidate, per_layer=True).report.part(Layers)
    assert layers.layer(layers.culprits[0]).steps[0] == "LeakyRelu_l"
    assert layers.exposed == ""


def test_a_level_that_the_user_chose_is_kept(tmp_path: Any) -> None:
    onnx.save(model(), tmp_path / "a.onnx")
    onnx.save(model(ALPHA), tmp_path / "b.onnx")
    a, b = (f"{tmp_path}/{name}.onnx@onnxruntime:basic" for name in "ab")
    layers = onnxsmith.compare(a, b, per_layer=True).report.part(Layers)
    assert layers.layer(layers.culprits[0]).steps[0] == "LeakyRelu_l"
