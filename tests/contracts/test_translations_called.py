"""Every translation against PyTorch, without an export: its samples are computed by `decompose` itself.

A node that a translation writes is run by ONNX Runtime as soon as it is written. A translation that leaves a call with
known sizes to PyTorch's exporter is traced with open ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.runtimes.torch_eager import to_array, to_tensor
from onnxsmith.verification.rounding import counted
from onnxsmith.verification.rounding_terms import UNKNOWN
from onnxsmith.verification.value_comparison import difference, unit
from tests.translations import NAMES, Calls, existing_samples, known, operator, tensors

_DEPTH = 16
"""Operations that a translation computes one after the other. A choice: some compute by fewer, none needs more."""
_OPSET = 21
"""The oldest opset with `block_size` in QuantizeLinear and DequantizeLinear; of other nodes it asks nothing."""


def symbolic(
    name: str, inputs: Sequence[Any], attrs: Mapping[str, Any], *, dtype: torch.dtype, shape: Sequence[int], **more: Any
) -> torch.Tensor:
    """`torch.onnx.ops.symbolic`, whose result has values."""
    (found,) = symbolic_multi_out(name, inputs, attrs, dtypes=[dtype], shapes=[shape], **more)
    return found


def symbolic_multi_out(
    name: str, inputs: Sequence[Any], attrs: Mapping[str, Any], *, dtypes: Sequence[torch.dtype],
    shapes: Sequence[Sequence[int]], version: int | None = None, **_: Any,
) -> list[torch.Tensor]:  # fmt: skip
    """`torch.onnx.ops.symbolic_multi_out`, whose results have values. They have to have the dtypes and shapes that the
    translation says."""
    domain, _colons, op_type = name.rpartition("::")
    arrays = [None if one is None else to_array(one) for one in inputs]
    ports = [None if one is None else port(f"x{index}", one) for index, one in enumerate(arrays)]
    attributes = [ir.convenience.convert_attribute(key, value) for key, value in attrs.items()]
    node = ir.Node(domain, op_type, ports, attributes, num_outputs=len(dtypes))
    for index, value in enumerate(node.outputs):
        value.name = f"y{index}"
    opsets = {"": max(version or 0, _OPSET)} if not domain else {"": _OPSET, domain: version or 1}
    graph = ir.Graph([one for one in ports if one is not None], node.outputs, nodes=[node], opset_imports=opsets)
    source = ir.to_proto(ir.Model(graph, ir_version=10)).SerializeToString()
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    found = session.run(None, {f"x{index}": one for index, one in enumerate(arrays) if one is not None})
    results = [to_tensor(one) for one in found]
    assert [one.dtype for one in results] == list(dtypes), name
    assert [list(one.shape) for one in results] == [list(shape) for shape in shapes], name
    return results


def port(name: str, array: Any) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(ir.DataType.from_numpy(array.dtype)), shape=ir.Shape(array.shape))


def computed(op: Any, sample: Sample) -> list[Any]:
    """The leaves of the result of one call. The same seed draws the same numbers."""
    torch.manual_seed(0)
    with torch.no_grad():
        (found,) = Calls([(op, sample)])(*fresh(sample))
    return list(found)


def traced(op: Any, sample: Sample) -> list[Any]:
    """The same by a trace in which every size is open, then run."""
    module, given = Calls([(op, sample)]), fresh(sample)
    with torch.no_grad():
        (found,) = make_fx(module, tracing_mode="symbolic")(*given)(*fresh(sample))
    return list(found)


def fresh(sample: Sample) -> list[torch.Tensor]:
    return [one.clone() for one in tensors([sample])]


class LeftError(Exception):
    """The translation leaves the call to PyTorch's exporter."""


def translated(translation: Translation, sample: Sample) -> list[Any]:
    """What the translation computes.

    Raises:
        LeftError: it computes nothing.
    """

    def op(*args: Any, **kwargs: Any) -> Any:
        found = translation.decompose(*args, **kwargs)
        if found is NotImplemented:
            raise LeftError
        return found

    try:
        return computed(op, sample)
    except LeftError:
        if not sample.dynamic:
            raise
    return traced(op, sample)


def assert_equal(translation: Translation, sample: Sample, found: Sequence[Any]) -> None:
    wanted = [to_array(one) for one in computed(operator(translation, sample), sample)]
    given = [to_array(one) for one in tensors([sample])]
    coarsest = max(map(unit, (*wanted, *given)), default=0.0)
    tolerance = max(counted(UNKNOWN, _DEPTH, coarsest).tolerance, translation.kernel_error)
    apart = difference(wanted, [to_array(one) for one in found], tolerance)
    assert not apart.reason, (sample, apart)


@pytest.mark.parametrize("name", NAMES)
def test_a_translation_computes_what_pytorch_computes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(torch.onnx.ops, "symbolic", symbolic)
    monkeypatch.setattr(torch.onnx.ops, "symbolic_multi_out", symbolic_multi_out)
    translation = known(name)
    count = 0
    for sample in existing_samples(translation):
        with contextlib.suppress(LeftError):
            assert_equal(translation, sample, translated(translation, sample))
            count += 1
    assert count, "no sample is computed by the translation itself"


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("complex-")])
def test_complex_numbers_of_a_sample_have_an_imaginary_part(name: str) -> None:
    torch.manual_seed(0)
    given = [(sample.args, dict(sample.kwargs)) for sample in existing_samples(known(name))]
    leaves = [torch.as_tensor(one) for one in pytree.tree_leaves(given) if isinstance(one, torch.Tensor | complex)]
    numbers = [one for one in leaves if one.is_complex() and one.numel()]
    assert all(bool(one.imag.any()) for one in numbers)
    assert numbers or not leaves
