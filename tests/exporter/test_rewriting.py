"""Rewrites: applied while a module is captured, undone afterwards, held to the module."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import BertConfig
from transformers.masking_utils import create_bidirectional_mask
from transformers.utils.generic import torch_float, torch_int

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.exporter.tracing import rewriting
from tests.exports import assert_follows

pytestmark = pytest.mark.usefixtures("compared_once")
"""The graphs are held to the module at other sizes and values by `follows`."""


def follows(module: nn.Module, example: tuple[Any, ...], *others: tuple[Any, ...], **options: Any) -> onnxsmith.Result:
    """Exports with the first of the inputs, and holds the graph to the module on the others, too."""
    result = onnxsmith.export(module.eval(), example, strategy="torch-export", **options)
    assert result.ok, result.report.problems
    assert result.model is not None
    assert_follows(result.model, module, *others)
    return result


class Signs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "_users", {})


@pytest.mark.usefixtures("forgotten")
def test_a_users_rewrite_is_used_and_named() -> None:
    @onnxsmith.rewrite(Signs)
    def traceable(self: Signs, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum() > 0, x, -x)

    module = Signs()
    result = follows(module, (torch.randn(3),), (torch.ones(3),), (-torch.ones(3),))
    assert any("Signs is replaced by" in note for note in result.report.part(Capture).notes)
    assert "forward" not in vars(module)


@pytest.mark.usefixtures("forgotten")
def test_a_wrong_rewrite_is_found() -> None:
    @onnxsmith.rewrite(Signs)
    def wrong(self: Signs, x: torch.Tensor) -> torch.Tensor:
        return x + 1

    result = onnxsmith.export(Signs(), (torch.randn(3),), strategy="torch-export")
    assert result.report.verdict is Verdict.DIFFERENT


def test_only_modules_are_rewritten() -> None:
    kind: Any = int
    with pytest.raises(OnnxsmithError, match="not a class of torch modules"):
        onnxsmith.rewrite(kind)


@pytest.mark.parametrize(
    "module",
    [
        nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
        nn.GRU(3, 4, bias=False, batch_first=True),
        nn.RNN(3, 4, nonlinearity="relu", batch_first=True),
    ],
    ids=["LSTM", "GRU", "RNN"],
)
def test_recurrent_layers_keep_batch_and_length(module: nn.Module) -> None:
    args = ((torch.rand(sizes),) for sizes in ((2, 5, 3), (1, 1, 3), (3, 8, 3), (4, 2, 3)))
    follows(module, *args, dynamic="input:0=batch,1=length")


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_a_projection_has_the_steps_of_the_example() -> None:
    args = ((torch.rand(5, batch, 3),) for batch in (2, 1, 4))
    follows(nn.LSTM(3, 4, proj_size=2), *args, dynamic="input:1=batch")


class Packed(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        rows, last = self.inner(packed)
        return *pad_packed_sequence(rows, batch_first=True), last


def test_packed_sequences() -> None:
    lengths = [2, 5, 3], [1], [4, 1, 3, 4], [2, 6]
    args = ((torch.rand(len(one), max(one), 3), torch.tensor(one)) for one in lengths)
    padded = torch.rand(2, 7, 3), torch.tensor([4, 3])
    follows(Packed(nn.GRU(3, 4, batch_first=True)), *args, padded, dynamic="x:0=b,1=t;lengths:0=b")


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_packed_sequences_and_a_projection() -> None:
    args = ((torch.rand(len(one), 5, 3), torch.tensor(one)) for one in ([2, 5, 3], [5], [1, 4, 5, 2], [3, 1]))
    module = Packed(nn.LSTM(3, 4, num_layers=2, proj_size=2, bidirectional=True, batch_first=True))
    follows(module, *args, dynamic="x:0=b;lengths:0=b")


def test_a_mask_of_a_transformer_is_not_looked_into() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    module = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    none = torch.zeros(3, 3, dtype=torch.bool)
    follows(module, *((torch.rand(2, 3, 4), mask) for mask in (none, torch.ones(3, 3).triu(1).bool())))


class Experts(nn.Module):
    """What transformers' experts look like."""

    has_gate, has_bias, is_transposed, has_post_expert_norm, num_experts = True, True, False, False, 3

    def __init__(self) -> None:
        super().__init__()
        self.gate_up_proj = nn.Parameter(torch.randn(3, 8, 4))
        self.gate_up_proj_bias = nn.Parameter(torch.randn(3, 8))
        self.down_proj = nn.Parameter(torch.randn(3, 4, 4))
        self.down_proj_bias = nn.Parameter(torch.randn(3, 4))

    def _apply_gate(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, -1)
        return torch.nn.functional.silu(gate) * up

    def forward(self, x: torch.Tensor, index: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for token, (experts, counts) in enumerate(zip(index.tolist(), weights, strict=True)):
            for expert, count in zip(experts, counts, strict=True):
                inner = self._apply_gate(x[token] @ self.gate_up_proj[expert].t() + self.gate_up_proj_bias[expert])
                out[token] += count * (inner @ self.down_proj[expert].t() + self.down_proj_bias[expert])
        return out


class Routed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts = nn.Linear(4, 3), Experts()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, index = self.router(x).softmax(-1).topk(2)
        out: torch.Tensor = self.experts(x, index, weights)
        return out


def test_a_mixture_of_experts_with_any_number_of_tokens() -> None:
    follows(Routed(), *((torch.randn(tokens, 4),) for tokens in (5, 1, 2, 9)), dynamic="x:0=tokens")


class Lengths(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x.new_zeros(len(x), 2), x], 1) * len(x) + len([x])


class TensorsOfSizes(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        height, width = x.shape[-2:]
        shapes = torch.tensor([[height, width], [height // 2, width // 2]], device=x.device)
        scale = torch.as_tensor((width, height / 2), dtype=x.dtype)
        return x.mean((2, 3)) / shapes[0].sum(), shapes, torch.tensor(height * width), torch.tensor([1.5, width]), scale


def test_the_length_of_a_tensor_follows_its_size() -> None:
    follows(Lengths(), *((torch.randn(rows, 3),) for rows in (2, 1, 7)), dynamic="x:0=rows")
    assert "len" not in globals()


def test_tensors_made_from_sizes_follow_them() -> None:
    args = ((torch.randn(sizes),) for sizes in ((2, 3, 8, 6), (1, 3, 1, 1), (3, 3, 5, 9), (1, 3, 6, 8)))
    follows(TensorsOfSizes(), *args, dynamic="x:0=batch,2=height,3=width")


class Converting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inner = self.inner.to(torch.float32)
        result: torch.Tensor = self.inner.to(x.device)(x)
        return result


def test_a_conversion_that_changes_nothing_is_left_out() -> None:
    follows(Converting(), *((torch.randn(rows, 3),) for rows in (2, 1, 5)), dynamic="x:0=rows")


class ExpertModules(nn.ModuleDict):
    """What transformers' experts look like that are modules."""

    num_experts = 3

    def __init__(self) -> None:
        super().__init__({f"expert_{index}": nn.Linear(4, 4) for index in range(self.num_experts)})

    def forward(
        self, hidden_states: torch.Tensor, selected_experts: torch.Tensor, routing_weights: torch.Tensor
    ) -> torch.Tensor:
        out = torch.zeros_like(hidden_states)
        mask = selected_experts.permute(2, 1, 0)
        for expert in torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero():
            choice, token = torch.where(mask[expert].squeeze(0))
            found = self[f"expert_{expert[0]}"](hidden_states[token]) * routing_weights[token, choice, None]
            out.index_add_(0, token, found)
        return out


class RoutedToModules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts = nn.Linear(4, 3), ExpertModules()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, index = self.router(x).softmax(-1).topk(2)
        chosen = nn.functional.one_hot(index, 3) * (index < 2)[..., None]
        result: torch.Tensor = self.experts(x, chosen, weights)
        return result


def test_experts_that_are_modules_take_any_number_of_tokens() -> None:
    follows(RoutedToModules(), *((torch.randn(tokens, 4),) for tokens in (5, 1, 2, 9)), dynamic="x:0=tokens")


class TransformersSizes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = torch_int(x.shape[2] / 2), torch_int(x.shape[3])
        return nn.functional.interpolate(x, size, mode="bilinear") * torch_float(x.shape[2])


def test_sizes_stay_open_through_the_casts_of_transformers() -> None:
    args = ((torch.randn(sizes),) for sizes in ((2, 3, 8, 6), (1, 3, 2, 1), (3, 3, 5, 9), (1, 3, 12, 7)))
    follows(TransformersSizes(), *args, dynamic="x:0=batch,2=height,3=width")
    assert type(torch_int(1.5)) is int


class Unmasked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.config = BertConfig(attn_implementation="eager")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = create_bidirectional_mask(config=self.config, inputs_embeds=x, attention_mask=None)
        return x if mask is None else x + mask.shape[-1]


def test_transformers_makes_no_mask_where_none_is_given() -> None:
    args = ((torch.randn(sizes),) for sizes in ((2, 5, 4), (1, 1, 4), (3, 8, 4)))
    follows(Unmasked(), *args, dynamic="x:0=batch,1=sequence")
