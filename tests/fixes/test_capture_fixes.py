"""Fixes of captures that fail: fixed axes, missing translations, quantised modules, and folders of transformers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnxscript import opset18

import onnxsmith
from onnxsmith.exporter.translating.register import forget
from onnxsmith.viewer.inspection import explain
from tests.fixes.harness import Call, Case, helps, parameters
from tests.fixes.test_export_fixes import EXPORT, HEAD, LINEAR, alone, code, diagnosed, module

pytestmark = [
    pytest.mark.usefixtures("forked_traces"),
    pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning", "ignore:.*deprecated:DeprecationWarning"),
]

ALONE = f"{EXPORT} --strategy torch-export"
LINEAR_FILES = {"model.py": LINEAR}
SCRIPTED = LINEAR.replace("torch.nn.Linear(3, 2)", "torch.jit.script(torch.nn.Linear(3, 2))")


def net(text: str, returned: str) -> str:
    """A file with these classes, whose `build` returns that."""
    return f"{HEAD}{text}\n\ndef build():\n    return {returned}\n"


BRANCH = module("if torch.compiler.is_exporting():", "    return x * 2", "return x * 3")
MASKED = net(
    "",
    "torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (torch.rand(3, 5, 8), torch.full((5, 5), -0.3))",
)
ADDS = """class Net(torch.nn.Module):
    def forward(self, x, y):
        return x + y
"""
TWO = net(ADDS, "Net(), (torch.ones(2),)")
CACHE = """class Cache:
    def __init__(self, keys):
        self.keys = keys

    def __call__(self, x):
        return x @ self.keys


class Net(torch.nn.Module):
    def forward(self, x, cache):
        return cache(x)
"""
FLAT = f"""{CACHE}

class Flat(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, keys):
        held = Cache.__new__(Cache)
        held.keys = keys
        return self.net(x, held)
"""
TRAINED = net(
    """class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.linear = torch.ao.quantization.QuantStub(), torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.linear(self.quant(x))


def trained():
    model = Net().train()
    model.qconfig = torch.ao.quantization.get_default_qat_qconfig("x86")
    model = torch.ao.quantization.prepare_qat(model)
    model(torch.rand(2, 4))
    return model
""",
    "trained(), (torch.rand(2, 4),)",
)
PACKED = """@torch.library.custom_op("fixes::product", mutates_args=())
def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x @ weight


@product.register_fake
def _(x, weight):
    return x.new_empty(x.shape[0], weight.shape[1])


class QuantLinear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.in_features = 8
        self.register_buffer("qweight", torch.ones(1, 4, dtype=torch.int32))
        self.register_buffer("scales", torch.rand(1, 4))

    def forward(self, x):
        return product(x, self.scales * self.qweight.expand(8, 4))
"""
CLOSED = """class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4))
        scaled = self.weight.detach() * 2
        self.product = lambda x: x @ scaled

    def forward(self, x):
        return self.product(x)
"""
UNSWITCHED = """class Net(torch.nn.Module):
    def train(self, mode=True):
        if not mode:
            raise ValueError("this network has no evaluation mode")
        return super().train(mode)

    def forward(self, x):
        return x * 2
"""
INPUT = "Net(), (torch.rand(2, 4),)"
BERT = {
    "model_type": "bert", "vocab_size": 40, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 8, "max_position_embeddings": 32,
}  # fmt: skip
LLAMA = {
    "model_type": "llama", "vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "intermediate_size": 20, "max_position_embeddings": 64, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
STATIC = {"cache_implementation": "static", "max_cache_len": 8}
LAYER = ", ".join(f"{value:.4f}" for value in np.random.default_rng(0).standard_normal(144))
SMALL = f"""<ir_version: 10, opset_import: ["": 20]>
g (float[n,12] x) => (float[n,12] y) <float[12,12] w = {{{LAYER}}}> {{ y = MatMul(x, w) }}"""


def dequantized() -> str:
    """The lines that the page of packed weights has for the reader's file."""
    found = re.search(r"```python\nimport torch\n(.*?)```", explain.pages()["export/packed-weights"], re.DOTALL)
    assert found is not None
    return found[1]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, x: torch.Tensor, times: int) -> torch.Tensor:
        return x * 2 * times


class Sized(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return Doubled.apply(x, x.shape[0])  # type: ignore[no-untyped-call]


@torch.library.custom_op("fixes::halved", mutates_args=())
def halved(x: torch.Tensor, times: int) -> torch.Tensor:
    return x * (0.5 * times)


@halved.register_fake
def _(x: torch.Tensor, times: int) -> torch.Tensor:
    return torch.empty_like(x)


class Halves(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return halved(x, 3)


class Relu(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


X = torch.rand(2, 3)


def exported(
    model: torch.nn.Module, *registered: Any, deliver: str = "operators", dynamic: Any = None
) -> Callable[[], object]:
    """Exports the module, with this target and translation registered."""

    def run() -> object:
        if registered:
            onnxsmith.register(*registered, deliver=deliver)
        try:
            result = onnxsmith.export(model, (X,), strategy="torch-export", dynamic=dynamic)
            assert result.ok, result.report.problems
        finally:
            if registered:
                forget(registered[0])
        return result

    return run


def faulty(x: Any) -> Any:
    return opset18.Relu(x, alpha=3)


def right(x: Any) -> Any:
    return opset18.Relu(x)


def translated(function: Callable[[Any], Any]) -> Callable[[], object]:
    """Exports with this translation of Relu, as torch's exporters take it."""
    table = {torch.ops.aten.relu.default: function}

    def run() -> object:
        made = onnxsmith.export(Relu(), (X,), custom_translation_table=table, strategy="torch-export")
        assert made.ok, made.report.problems
        return made

    return run


def generating(said: dict[str, Any]) -> Callable[[], object]:
    """Loads a model to generate text, with this `generation_config.json`."""

    def run() -> object:
        from onnxsmith.exporter.pretrained import pretrained_folder

        for name, content in (("config", LLAMA), ("generation_config", said)):
            Path(f"{name}.json").write_text(json.dumps(content))
        return pretrained_folder.load(str(Path.cwd()), "text-generation-with-past")

    return run


def loaded(task: str) -> Callable[[], object]:
    """Loads a model that keeps in an attribute how many positions an image takes."""

    def run() -> object:
        from onnxsmith.exporter.pretrained import pretrained_folder
        from tests.exporter.pretrained.test_image_continuation import QWEN

        QWEN.save_pretrained("qwen")
        return pretrained_folder.load("qwen", task)

    return run


CASES: list[Case | Call] = [
    alone(
        "export/capture-failed",
        module("import copy", "return copy.deepcopy(x) * 2"),
        module("return x.clone() * 2"),
        ".clone()",
    ),
    alone(
        "export/capture-failed",
        SCRIPTED,
        LINEAR,
        "before torch.jit.script",
    ),
    Case(
        "export/capture-failed",
        f"{EXPORT} --no-verify",
        {"model.py": SCRIPTED},
        by_hand=EXPORT,
        says=["leave --no-verify out"],
        name="a trace by example",
    ),
    code(
        "export/constant-input",
        module("return x * float(y)", takes="self, x, y", example="torch.rand(2, 4), torch.rand(())"),
        module("return x * y", takes="self, x, y", example="torch.rand(2, 4), torch.rand(())"),
        "the tensor itself",
        command=f"{EXPORT} --strategy torchscript",
    ),
    Case(
        "export/dtype",
        f"{ALONE} --opset 20",
        {"model.py": module("return torch.sin(x)", example="torch.rand(2, 4, dtype=torch.bfloat16)")},
    ),
    code(
        "export/dtype",
        module("return torch.sin(x)", example="torch.rand(2, 4, dtype=torch.bfloat16)"),
        module("return torch.sin(x.float()).bfloat16()", example="torch.rand(2, 4, dtype=torch.bfloat16)"),
        "x.float() before it, .bfloat16() after it",
        command=f"{ALONE} --opset 20",
        name="in float32",
    ),
    code(
        "export/frozen-axis",
        module("return x.view(2, 4) + 1"),
        module("return x.view(x.shape[0], 4) + 1"),
        "return x.view(x.shape[0], 4) + 1",
        command=f"{ALONE} --dynamic x:0=batch",
    ),
    Case(
        "export/frozen-axis",
        f"{ALONE} --dynamic input:1=n",
        LINEAR_FILES,
        by_hand=ALONE,
        says=["leave input:1 out of --dynamic"],
        name="a layer",
    ),
    code(
        "export/frozen-axis",
        module("return x.view(1, -1) + torch.ones(4)", example="torch.rand(1, 4)"),
        module("return x.view(x.shape[0], -1) + torch.ones(4)", example="torch.rand(1, 4)"),
        "x.shape[i] in place of 1",
        command=f"{ALONE} --dynamic x:0=batch",
        name="an example of size 1",
    ),
    code(
        "export/missing-argument",
        TWO,
        TWO.replace("(torch.ones(2),)", "(torch.ones(2),), {'y': torch.ones(2)}"),
        "return module, args, {'y': example}",
    ),
    Call(
        "export/no-state",
        generating(STATIC),
        generating({}),
        ["remove cache_implementation from generation_config.json"],
    ),
    Call(
        "export/no-state",
        loaded("image-text-to-text-with-past"),
        loaded("image-text-to-text"),
        ["--task image-text-to-text:"],
        name="without a state",
    ),
    alone(
        "export/no-translation",
        module("return torch.linalg.eigvals(x + x.T).real", example="torch.rand(4, 4)"),
        module("return torch.linalg.eigh(x + x.T)[0]", example="torch.rand(4, 4)"),
        "or use other operators",
    ),
    Call(
        "export/no-translation",
        exported(Halves()),
        exported(Halves(), "fixes::halved", lambda x, times: x * (times / 2)),
        ["@onnxsmith.register('fixes::halved')", "onnxsmith.diagnose(module, args)"],
        name="registered",
    ),
    diagnosed(
        "export/object-input",
        net(CACHE, "Net(), (torch.rand(3, 4), Cache(torch.rand(4, 4)))"),
        net(FLAT, "Flat(Net()), (torch.rand(3, 4), torch.rand(4, 4))"),
        "pass the tensors to forward as separate arguments",
    ),
    alone(
        "export/observers-on",
        TRAINED,
        TRAINED.replace("return model\n", "return model.apply(torch.ao.quantization.disable_observer)\n"),
        "model.apply(torch.ao.quantization.disable_observer)",
    ),
    Case("export/other-path", ALONE, {"model.py": BRANCH}, nth=1),
    Case("export/other-path", ALONE, {"model.py": MASKED}, nth=1, name="a mask of floats"),
    alone(
        "export/packed-weights",
        net(PACKED, "torch.nn.Sequential(QuantLinear()), (torch.rand(2, 8),)"),
        net(
            PACKED + dequantized(),
            "dequantized(torch.nn.Sequential(QuantLinear())), (torch.rand(2, 8),)",
        ),
        "`onnxsmith explain export/packed-weights`",
    ),
    alone(
        "export/quantized-module",
        module("return torch.sort(torch.quantize_per_tensor(x, 0.1, 3, torch.quint8))[0].dequantize()"),
        module("return torch.sort(torch.quantize_per_tensor(x, 0.1, 3, torch.quint8).dequantize())[0]"),
        "x.dequantize() before it",
    ),
    Call(
        "export/rewrite",
        lambda: onnxsmith.rewrite(Relu()),  # type: ignore[arg-type]
        lambda: onnxsmith.rewrite(Relu),
        ["@onnxsmith.rewrite(Relu)"],
    ),
    Call(
        "export/translation-failed",
        translated(faulty),
        translated(right),
        [f"correct the translation at {__file__}:{faulty.__code__.co_firstlineno + 1}"],
    ),
    Case(
        "export/transformers-folder",
        "onnxsmith export bret --task fill-mask -o m.onnx --strategy torch-export",
        {"bert/config.json": json.dumps(BERT)},
        by_hand="onnxsmith export bert --task fill-mask -o m.onnx --strategy torch-export --no-verify",
        says=["write bert in place of bret"],
    ),
    alone(
        "export/unforeseen", net(UNSWITCHED, INPUT), net(UNSWITCHED.replace("not mode", "False"), INPUT), "model.py:7"
    ),
    code(
        "export/weights-stay",
        net(CLOSED, INPUT),
        net(CLOSED.replace("x @ scaled", "x @ (self.weight * 2)"), INPUT),
        "compute with the parameter itself",
        command=f"{ALONE} --no-weights",
    ),
    Case(
        "quantize/larger",
        "onnxsmith quantize m.onnx -o q.onnx --to int8-dynamic",
        {"m.onnx": SMALL},
        nth=1,
    ),
    Call(
        "register/dynamic-attribute",
        exported(Sized(), Doubled, lambda x, times: x * 2 * times, deliver="function", dynamic={"x": [0]}),
        exported(Sized(), Doubled, lambda x, times: x * 2 * times, deliver="operators", dynamic={"x": [0]}),
        ['deliver="operators"'],
    ),
    Call(
        "register/symbolic",
        exported(Halves(), "fixes::halved", lambda g, x, times: g.at("mul", x, x.node())),
        exported(Halves(), "fixes::halved", lambda x, times: x * (times / 2)),
        ["onnxsmith.register('fixes::halved', lambda x, times: …)"],
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
