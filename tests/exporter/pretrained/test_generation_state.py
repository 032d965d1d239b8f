"""States between two calls: what is read off a model's calls, and a text that is generated with the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.exporter.pretrained import generation_state
from tests.exporter.pretrained.texts import TEXT

KINDS: dict[str, Any] = {
    "cache": transformers.LlamaConfig(**TEXT),
    "window": transformers.MistralConfig(**TEXT, sliding_window=4),
    "large window": transformers.MistralConfig(**TEXT, sliding_window=32),
    "recurrent": transformers.MambaConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=1, state_size=4, time_step_rank=4
    ),
    "convolution": transformers.Lfm2Config(
        **{**TEXT, "num_hidden_layers": 2}, layer_types=["conv", "full_attention"], block_multiple_of=4
    ),
    "list": transformers.RwkvConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, attention_hidden_size=16),
}
BATCH, SEEN, WINDOW = generation_state.BATCH, generation_state.SEEN, generation_state.WINDOW


def step(kind: str) -> generation_state.Step:
    torch.manual_seed(0)
    return of(transformers.AutoModelForCausalLM.from_config(KINDS[kind]).float().eval())


def of(module: Any) -> generation_state.Step:
    kwargs = {"input_ids": torch.randint(3, 40, (2, 8)), "attention_mask": torch.ones(2, 8, dtype=torch.int64)}
    return generation_state.step(module, kwargs, {}, 40, {"cache": "past"})


@pytest.mark.parametrize(
    ("kind", "tensor", "axes"),
    [
        ("cache", "past.0.key", {0: BATCH, 2: SEEN}),
        ("cache", "attention_mask", {0: BATCH, 1: f"{SEEN} + sequence_length"}),
        ("window", "past.0.key", {0: BATCH, 2: WINDOW}),
        ("window", "attention_mask", {0: BATCH, 1: "total_sequence_length"}),
        ("large window", "past.0.value", {0: BATCH, 2: WINDOW}),
        ("recurrent", "past.0.recurrent_states.0", {0: BATCH}),
        ("recurrent", "input_ids", {0: BATCH}),
        ("convolution", "past.1.key", {0: BATCH, 2: SEEN}),
        ("convolution", "attention_mask", {0: BATCH, 1: f"{SEEN} + 1"}),
        ("list", "state.0", {}),
    ],
)
def test_axes_are_those_that_move(kind: str, tensor: str, axes: dict[int, str]) -> None:
    assert step(kind).dynamic[tensor] == axes


@pytest.mark.parametrize(
    ("kind", "limits"),
    [
        ("cache", ()),
        ("recurrent", ("takes one token in a call",)),
        ("list", ("takes a batch of 1 only", "takes one token in a call")),
    ],
)
def test_what_the_model_cannot_do_is_said(kind: str, limits: tuple[str, ...]) -> None:
    assert step(kind).limits == limits


def test_further_arguments_begin_with_an_empty_state_and_go_beyond_the_window() -> None:
    lengths = [more["attention_mask"].shape[1] - more["input_ids"].shape[1] for more in step("large window").more]
    assert 0 in lengths
    assert max(lengths) > 32


class Counts:
    """Keys, and a count that grows by two with each token: no input says it."""

    def __init__(self) -> None:
        self.keys = torch.zeros(0)
        self.twice = 0


class Model(torch.nn.Module):
    """Adds up its tokens. Each of `hidden` is a way to keep more than the state's tensors."""

    main_input_name = "input_ids"

    def __init__(self, hidden: str) -> None:
        super().__init__()
        self.hidden, self.sum = hidden, torch.zeros(1)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: Any = None, cache: Any = None, use_cache: bool = False
    ) -> dict[str, Any]:
        if self.hidden == "attribute":
            self.sum = input_ids.float().sum(1, keepdim=True) + (self.sum if cache is not None else 0)
            return {"logits": self.sum[..., None]}
        rows = input_ids.float()[:, None, :, None]
        seen = Counts() if cache is None else cache
        seen.keys = rows if cache is None else torch.cat([seen.keys, rows], 2)
        first = seen.twice
        seen.twice = first + 2 * rows.shape[2]
        places = first + 2 * torch.arange(rows.shape[2])
        return {"logits": rows[:, 0] + places[:, None] * 10, "cache": seen}


@pytest.mark.parametrize("hidden", ["attribute", "count"])
def test_a_state_that_is_more_than_its_tensors_is_refused(hidden: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        of(Model(hidden))
    assert caught.value.problem.id == "export/no-state"


def test_a_model_that_fails_by_itself_is_named() -> None:
    class Broken(Model):
        def forward(self, *_: Any, **__: Any) -> dict[str, Any]:
            raise ValueError("the chunk has to divide the text")

    with pytest.raises(OnnxsmithError, match="Broken raised an error on a text of its task") as caught:
        of(Broken(""))
    assert caught.value.problem.id == "export/forward-failed"
    assert "the chunk has to divide the text" in caught.value.problem.why
    assert "test_generation_state.py" in caught.value.problem.where


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("kind", ["window", "recurrent"])
def test_a_file_generates_what_the_model_does(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(KINDS[kind]).float().eval()
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.onnx"
    result = onnxsmith.export(str(tmp_path), task="text-generation-with-past", output=file)
    assert result.ok, result.report.headline
    assert ("takes one token in a call" in result.report.headline) == (kind == "recurrent")
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    text, cache = torch.randint(3, 40, (3, 9)), None
    feeds: dict[str, Any] = {}
    for port in session.get_inputs():
        feeds[port.name] = np.zeros([3 if axis == 0 else size if isinstance(size, int) else 0
                                     for axis, size in enumerate(port.shape)], np.float32)  # fmt: skip
    one = isinstance({port.name: port.shape for port in session.get_inputs()}["attention_mask"][1], int)
    for at in range(9):
        with torch.no_grad():
            wanted = model(input_ids=text[:, at : at + 1], cache=cache, use_cache=True)
        cache = wanted.cache
        feeds["input_ids"] = text[:, at : at + 1].numpy()
        feeds["attention_mask"] = np.ones((3, 1 if one else at + 1), np.int64)
        names = [port.name for port in session.get_outputs()]
        found = dict(zip(names, session.run(None, feeds), strict=True))
        assert np.allclose(found["logits"], wanted.logits.numpy(), atol=1e-4)
        feeds |= {name.replace("present", "past_key_values"): value for name, value in found.items() if "pres" in name}
