"""Operators of the user's own, as operators, as a function, and as a plugin."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.exporter.translating.custom_operators import Uses
from onnxsmith.exporter.translating.register import DELIVERIES, forget, registered
from onnxsmith.graph.files.save import Stage
from tests.exports import assert_follows


def example() -> Any:
    path = Path(__file__).parents[2] / "examples" / "60_custom_operator" / "model.py"
    spec = importlib.util.spec_from_file_location("custom_operator_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLE = example()
DEFORMABLE = "example::deformable"


class Deformable(nn.Module):
    """The operator of the example with a mask and without."""

    def __init__(self, *, with_bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, 3, 3))
        self.bias = nn.Parameter(torch.randn(4)) if with_bias else None
        self.offset = nn.Conv2d(3, 18, 3, padding=1)
        self.mask = nn.Conv2d(3, 9, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        op = torch.ops.example.deformable
        once: torch.Tensor = op(x, self.weight, self.offset(x), self.mask(x).sigmoid(), self.bias, 1, 1)
        return once + op(x, self.weight, self.offset(x) * 0.5, None, self.bias, 1, 1)


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    for one in registered():
        forget(one.target)


def export(module: nn.Module, *args: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    return onnxsmith.export(module, args, strategy="torch-export", **options)


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("deliver", [*DELIVERIES, "standard"])
@pytest.mark.parametrize("with_bias", [True, False])
def test_deformable_convolution(deliver: str, with_bias: bool, tmp_path: Path) -> None:
    if deliver == "standard":
        onnxsmith.register(DEFORMABLE, EXAMPLE.as_deform_conv)
    else:
        onnxsmith.register(DEFORMABLE, EXAMPLE.deformable, deliver=deliver, domain="vision")
    file = tmp_path / "m.onnx"
    dynamic = {"x": {0: "batch", 2: "height", 3: "width"}}
    module = Deformable(with_bias=with_bias).eval()
    result = export(module, torch.rand(2, 3, 6, 7), dynamic=dynamic, output=file)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    verified = tmp_path / "m.reference.onnx" if deliver == "plugin" else file
    assert_follows(verified, module, *((torch.rand(sizes),) for sizes in ((1, 3, 1, 1), (1, 3, 8, 5), (3, 3, 5, 9))))
    written = onnx.load(file)
    ops = [(node.domain, node.op_type) for node in written.graph.node]
    if deliver == "standard":
        assert ops.count(("", "DeformConv")) == 2
    if deliver == "function":
        assert len(written.functions) == 2
    if deliver == "plugin":
        nodes = [node for node in written.graph.node if node.domain == "vision"]
        assert [node.op_type for node in nodes] == ["deformable"] * 2
        assert not written.functions
        operands = [[bool(name) for name in node.input] for node in nodes]
        assert operands == [
            [True, True, True, True, with_bias][: 5 if with_bias else 4],
            [True] * 3 + [False, True],
        ] or (not with_bias and operands == [[True] * 4, [True] * 3])
        assert {a.name: onnx.helper.get_attribute_value(a) for a in nodes[0].attribute} == {"stride": 1, "padding": 1}
        assert any("plugin" in note for note in result.report.part(Capture).notes)
        x = torch.rand(1, 3, 5, 5)
        answer = onnxsmith.run(tmp_path / "m.reference.onnx", {"x": x.numpy()}).outputs["output"]
        assert np.isfinite(answer).all()


@pytest.mark.usefixtures("compared_once")
def test_an_operator_that_an_old_opset_lacks_names_the_opset_that_has_it() -> None:
    onnxsmith.register(DEFORMABLE, EXAMPLE.as_deform_conv)
    example = torch.rand(2, 3, 6, 7)
    with pytest.raises(OnnxsmithError) as caught:
        export(Deformable().eval(), example, opset=12)
    found = caught.value.problem
    assert found.id == "export/opset"
    assert "DeformConv" in found.why
    assert found.fix.endswith(": --opset 19")
    assert export(Deformable().eval(), example, opset=19).ok


def test_a_wrong_translation_is_found() -> None:
    onnxsmith.register(
        DEFORMABLE,
        lambda x, weight, offset, mask, bias, stride, padding: (
            2 * EXAMPLE.deformable(x, weight, offset, mask, bias, stride, padding)
        ),
    )
    assert export(Deformable(), torch.rand(2, 3, 6, 7)).report.verdict is Verdict.DIFFERENT


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, times: int) -> torch.Tensor:
        return torch.from_numpy(x.numpy(force=True) * 2 * times)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


class Applies(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return Doubled.apply(x, 3) + 1  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("deliver", DELIVERIES)
def test_an_autograd_function_is_bound(deliver: str) -> None:
    @onnxsmith.register(Doubled, deliver=deliver)  # type: ignore[untyped-decorator]
    def doubled(x: torch.Tensor, times: int) -> torch.Tensor:
        return x * 2 * times

    result = export(Applies(), torch.rand(2, 3), dynamic={"x": [0]})
    assert result.report.verdict is Verdict.DONE
    assert next(node.op_type for node in result.model.graph) == ("Mul" if deliver == "operators" else "Doubled")


@pytest.mark.usefixtures("compared_once")
def test_an_operator_of_pytorch_itself_is_bound() -> None:
    class Zeta(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.zeta(x, torch.tensor(1.0))

    onnxsmith.register("aten::special_zeta", lambda x, y: sum((y + k) ** -x for k in range(200)))
    assert export(Zeta(), torch.rand(4) + 9).report.verdict is Verdict.DONE


@pytest.mark.parametrize(
    ("target", "translation", "options", "id_"),
    [
        (DEFORMABLE, lambda x, weight: x, {}, "register/signature"),
        (
            DEFORMABLE,
            lambda weight, x, offset, mask, bias, stride, padding: x,
            {},
            "register/signature",
        ),
        ("onnxsmith_tests::none", lambda x: x, {}, "register/unknown-operator"),
        (Doubled, lambda x: x, {}, "register/signature"),
        (Doubled, lambda x, times: x, {"deliver": "mail"}, "register/delivery"),
    ],
)
def test_what_cannot_be_registered_is_refused(target: Any, translation: Any, options: Any, id_: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.register(target, translation, **options)
    assert caught.value.problem.id == id_
    assert not registered()


def test_an_attribute_that_follows_a_size_is_refused() -> None:
    class Sized(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return Doubled.apply(x, x.shape[0])  # type: ignore[no-untyped-call]

    onnxsmith.register(Doubled, lambda x, times: x * 2 * times, deliver="function")
    with pytest.raises(OnnxsmithError, match="register/dynamic-attribute"):
        export(Sized(), torch.rand(2, 3), dynamic={"x": [0]})


LIBRARY = torch.library.Library("onnxsmith_tests", "FRAGMENT")
LIBRARY.define("between(Tensor x, float[] axes, *, Tensor low, Tensor high) -> Tensor")


def clamped(x: torch.Tensor, axes: list[float], *, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    return torch.minimum(torch.maximum(x, low), high)


LIBRARY.impl("between", clamped, "CPU")


class Between(nn.Module):
    def forward(self, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> Any:
        return torch.ops.onnxsmith_tests.between(x, [], high=high, low=low)


def bounds() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.linspace(-1, 1, 5), torch.tensor(-0.5), torch.tensor(0.25)


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("deliver", ["function", "plugin"])
def test_keywords_in_another_order_and_an_empty_list(deliver: str, tmp_path: Path) -> None:
    onnxsmith.register("onnxsmith_tests::between", clamped, deliver=deliver)
    result = export(Between(), *bounds(), output=tmp_path / "m.onnx")
    assert result.report.verdict is Verdict.DONE, result.report.problems
    [node] = onnx.load(tmp_path / "m.onnx").graph.node
    assert list(node.input) == ["x", "low", "high"]
    if deliver == "plugin":
        assert [(one.name, one.type, list(one.floats)) for one in node.attribute] == [
            ("axes", onnx.AttributeProto.FLOATS, [])
        ]


def test_a_call_gives_node_and_function_the_same_order() -> None:
    onnxsmith.register("onnxsmith_tests::between", clamped, deliver="function")
    uses = Uses()
    x, low, high = bounds()
    uses.translated(registered()[0])(high=high, low=low, axes=[], x=x)
    [use] = uses.seen
    assert [leaf for leaf in use.leaves if isinstance(leaf, torch.Tensor)] == [x, low, high]


def test_functions_are_counted_by_their_name() -> None:
    class Both(nn.Module):
        def forward(self, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> Any:
            between = torch.ops.onnxsmith_tests.between
            once = between(x, [], low=low, high=high)
            return Doubled.apply(once, 3), Doubled.apply(x, 4)  # type: ignore[no-untyped-call]

    onnxsmith.register(Doubled, lambda x, times: x * 2 * times, deliver="function")
    onnxsmith.register("onnxsmith_tests::between", clamped, deliver="function")
    result = export(Both(), *bounds(), verify=False)
    assert sorted(name for _, name, _ in result.model.functions) == ["Doubled", "Doubled_2", "between"]


def plugin_notes(result: Any) -> str:
    return "".join(note for note in result.report.part(Capture).notes if "plugin" in note)


@pytest.mark.usefixtures("compared_once")
def test_the_note_says_where_the_reference_is(tmp_path: Path) -> None:
    onnxsmith.register("onnxsmith_tests::between", clamped, deliver="plugin")
    to_path = export(Between(), *bounds(), output=tmp_path / "m.onnx")
    assert plugin_notes(to_path).endswith(
        f"; {tmp_path / 'm.reference.onnx'} is the model with its translation as a function, which was verified"
    )
    assert to_path.report.headline.endswith("; no installed runtime runs the model's operator custom::between")
    file = io.BytesIO()
    to_file = export(Between(), *bounds(), output=file)
    assert plugin_notes(to_file).endswith("; the verified model is the model with its translation as a function")
    assert file.getvalue() == (tmp_path / "m.onnx").read_bytes()
    unverified = export(Between(), *bounds(), verify=False)
    assert plugin_notes(unverified).endswith("to run this file, a runtime needs a kernel for between")


def test_the_reference_file_is_what_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was spoilt on its way to the disk is found, and neither file is written."""
    onnxsmith.register("onnxsmith_tests::between", clamped, deliver="plugin")
    write = Stage.write

    def spoilt(stage: Stage, model: ir.Model, *, external_data: bool | None = None) -> None:
        for node in [node for function in model.functions.values() for node in function]:
            node.op_type = {"Min": "Max", "Max": "Min"}.get(node.op_type, node.op_type)
        write(stage, model, external_data=external_data)

    monkeypatch.setattr(Stage, "write", spoilt)
    result = export(Between(), *bounds(), output=tmp_path / "m.onnx")
    assert result.report.verdict is Verdict.DIFFERENT
    assert not list(tmp_path.iterdir())


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = torch.ops.aten.special_zeta(x, 2 * x + 3)
        return scaled


@pytest.mark.parametrize(
    "target",
    [torch.ops.aten.special_zeta, torch.ops.aten.special_zeta.default, "aten::special_zeta"],
    ids=["packet", "overload", "name"],
)
def test_an_operator_is_given_itself(target: Any) -> None:
    onnxsmith.register(target, lambda x, other: x * 0 + other, deliver="function")
    assert [str(one.target).removesuffix(".default") for one in registered()] == ["aten::special_zeta"]
    result = export(Scaled(), torch.rand(2, 3))
    assert result.report.verdict is Verdict.DIFFERENT  # the translation is wrong on purpose: it was used
    forget(target)
    assert not registered()


@pytest.mark.parametrize("target", [print, 3, nn.Linear])
def test_what_is_no_operator_is_refused(target: Any) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.register(target, lambda x: x)
    assert caught.value.problem.id == "register/unknown-operator"
