"""`bisect` on ten models of packages: how long it takes, what its file holds, and whether that still agrees.

    python benchmarks/comparing/bisecting.py [--only NAME …] [--jsonl FILE]

The networks are those of timm, torchvision and transformers with random weights, of their own sizes or somewhat
smaller, exported by torch's exporters. Some get a part that float16 cannot hold: a normalisation by the
sum of squares of large numbers. Two are asked for in bfloat16, one of them at opset 11, which has no bfloat16; the
others in float16. The nodes and weights are counted in the file that was written, and that file is compared with the
original on other inputs, in a session of onnxruntime that this script makes itself.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnx.reference import ReferenceEvaluator
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.quantisation import Precision

SECONDS = 120.0
"""The goal: an end within two minutes."""
TOLERANCE = 0.02
"""The largest difference asked for, relative to an output's scale. A choice: what float16 costs a network of this size
is a few thousandths, what a lost variance costs is more than a tenth."""
Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Fragile(nn.Module):
    """A network, and behind its first output a normalisation that overflows in float16."""

    def __init__(self, inner: nn.Module, scale: float = 3000.0) -> None:
        super().__init__()
        self.inner, self.scale = inner, scale

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        found = _first(self.inner(*args))
        large = found / found.abs().mean((-2, -1), keepdim=True) * self.scale
        centred = large - large.mean(-1, keepdim=True)
        return centred / ((centred * centred).mean(-1, keepdim=True) + 1.0).sqrt()


class Words(nn.Module):
    """A convolutional network whose columns go through a recurrent one, as for reading a line of text."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models import vgg11_bn

        self.features = vgg11_bn(weights=None).features[:15]
        self.rows = nn.LSTM(256, 96, bidirectional=True, batch_first=True)
        self.head = nn.Linear(192, 97)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = self.features(x).mean(2).transpose(1, 2)
        return self.head(self.rows(columns)[0]).log_softmax(-1)


class Tokens(nn.Module):
    """A network of transformers on token ids alone, with its first output."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return _first(self.inner(input_ids=ids))


class Embedding(nn.Module):
    """A sentence's embedding: the mean of an encoder's tokens, of length 1."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        tokens = _first(self.inner(input_ids=ids, attention_mask=mask))
        kept = mask[..., None].to(tokens.dtype)
        return nn.functional.normalize((tokens * kept).sum(1) / kept.sum(1), dim=-1)


def _first(found: Any) -> torch.Tensor:
    while not isinstance(found, torch.Tensor):
        found = next(iter(found.values())) if isinstance(found, dict) else found[0]
    return found


def _timm(name: str, size: int = 96) -> Made:
    import timm

    return timm.create_model(name, pretrained=False), (torch.randn(1, 3, size, size),)


def _hf(kind: str, config: str, **sizes: Any) -> nn.Module:
    import transformers

    return getattr(transformers, kind)(getattr(transformers, config)(attn_implementation="eager", **sizes))


def _ids(vocabulary: int, length: int = 24) -> torch.Tensor:
    return torch.randint(0, vocabulary, (1, length))


SMALL = {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 512}


def _bert() -> nn.Module:
    return _hf("BertModel", "BertConfig", vocab_size=2000, add_pooling_layer=False, **SMALL)


def _detector() -> Made:
    sizes = {"image_size": [96, 96], "patch_size": 16, "num_detection_tokens": 20, **SMALL}
    return Fragile(_hf("YolosForObjectDetection", "YolosConfig", **sizes)), (torch.randn(1, 3, 96, 96),)


def _speech() -> Made:
    sizes = {"conv_dim": (64,) * 4, "conv_stride": (5, 2, 2, 2), "conv_kernel": (10, 3, 3, 2), **SMALL}
    more = {"num_feat_extract_layers": 4, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
    return Fragile(_hf("Wav2Vec2Model", "Wav2Vec2Config", **sizes, **more)), (torch.randn(1, 4000),)


def _decoder() -> Made:
    sizes = {"vocab_size": 2000, "num_key_value_heads": 2, "use_cache": False, **SMALL}
    return Tokens(_hf("LlamaForCausalLM", "LlamaConfig", **sizes)), (_ids(2000),)


def _gpt() -> Made:
    sizes = {"vocab_size": 2000, "n_embd": 192, "n_layer": 4, "n_head": 4, "use_cache": False}
    return Tokens(_hf("GPT2LMHeadModel", "GPT2Config", **sizes)), (_ids(2000),)


@dataclass(frozen=True)
class Asked:
    """One bisection: what it is of, the dtype, the opset, and whether torch's newer exporter writes the file."""

    kind: str
    make: Callable[[], Made]
    to: str = "float16"
    opset: int = 18
    newer: bool = False


MODELS = {
    "resnet18 of timm": Asked("CNN", lambda: _timm("resnet18")),
    "mobilenetv3_small_100 of timm": Asked(
        "CNN, with a part that overflows", lambda: _fragile("mobilenetv3_small_100")
    ),
    "vgg11_bn of torchvision, LSTM": Asked("OCR (CRNN)", lambda: (Words(), (torch.randn(1, 3, 32, 160),))),
    "yolos of transformers": Asked("detector, with a part that overflows", _detector),
    "bert of transformers": Asked("encoder, opset 11", lambda: (Tokens(_bert()), (_ids(2000),)), "bfloat16", 11),
    "llama of transformers": Asked("decoder", _decoder, newer=True),
    "gpt2 of transformers": Asked("decoder", _gpt, "bfloat16", newer=True),
    "wav2vec2 of transformers": Asked("speech, with a part that overflows", _speech),
    "bert of transformers, pooled": Asked(
        "embedding", lambda: (Embedding(_bert()), (_ids(2000), torch.ones(1, 24, dtype=torch.int64))), newer=True
    ),
    "vit_tiny_patch16_224 of timm": Asked("vision transformer", lambda: _timm("vit_tiny_patch16_224", 224), newer=True),
}


def _fragile(name: str) -> Made:
    inner, args = _timm(name)
    return Fragile(inner), args


@dataclass(frozen=True)
class Row:
    """What became of one model. `seconds` are those of a clock, `processor` those of all processes. `after` is the
    largest difference of the written file from the original, relative to the output's scale, in a plain session; None
    if there is no file, or if nothing here runs it."""

    model: str
    kind: str
    to: str
    verdict: str
    seconds: float
    processor: float
    nodes: int
    narrow: int
    kept: int
    weights: int
    weights_narrow: int
    before: str
    after: float | None
    note: str = ""


def exported(asked: Asked, path: Path) -> dict[str, Any]:
    """Writes the file of a model, and returns the inputs of the export."""
    torch.manual_seed(0)
    module, args = asked.make()
    module.eval()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if asked.newer:
            program = torch.onnx.export(module, args, dynamo=True, verbose=False, opset_version=asked.opset)
            program.save(path)
        else:
            buffer = io.BytesIO()
            torch.onnx.export(module, args, buffer, dynamo=False, opset_version=asked.opset)
            path.write_bytes(buffer.getvalue())
    names = [one.name for one in onnx.load(path, load_external_data=False).graph.input]
    return {name: tensor.numpy() for name, tensor in zip(names, args, strict=True)}


def other(inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs like these that the search did not see."""
    rng = np.random.default_rng(99)
    return {
        name: rng.permutation(array.ravel()).reshape(array.shape)
        if array.dtype.kind == "f"
        else array[..., ::-1].copy()
        for name, array in inputs.items()
    }


def bisected(name: str, asked: Asked, folder: Path) -> Row:
    """Bisects one model and looks into the file."""
    path, mixed = folder / "model.onnx", folder / "mixed.onnx"
    inputs = exported(asked, path)
    given = folder / "inputs.npz"
    np.savez(given, **inputs)
    began, used = time.monotonic(), _processor()
    wanted = {
        "to": asked.to,
        "tolerance": TOLERANCE,
        "any_runtime": asked.to == "bfloat16",
    }  # a CPU has few kernels of it
    result = onnxsmith.bisect(path, inputs=[str(given)], only_given=True, model=mixed, **wanted)
    seconds, used = time.monotonic() - began, _processor() - used
    part = result.report.part(Precision)
    ended, notes = result.report.verdict.value, "; ".join(part.notes)
    row = Row(
        name, asked.kind, asked.to, ended, seconds, used, part.nodes, 0, len(part.kept), 0, 0, part.before, None, notes
    )
    if not mixed.exists():
        return row
    counted = _counted(mixed, asked.to)
    after, said = _apart(path, mixed, other(inputs))
    return Row(**{**asdict(row), **counted, "after": after, "note": "; ".join(filter(None, [row.note, said]))})


def _processor() -> float:
    """Seconds of this process and of its children that ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _counted(path: Path, to: str) -> dict[str, int]:
    """Nodes and weights of a file, counted with onnx alone."""
    model = onnx.load(path)
    narrow = onnx.TensorProto.FLOAT16 if to == "float16" else onnx.TensorProto.BFLOAT16
    held = Counter(tensor.data_type for tensor in model.graph.initializer)
    for node in model.graph.node:
        held.update(a.t.data_type for a in node.attribute if node.op_type == "Constant" and a.name == "value")
    known = onnx.shape_inference.infer_shapes(model)
    types = {value.name: value.type.tensor_type.elem_type for value in (*known.graph.value_info, *known.graph.output)}
    made = [node for node in model.graph.node if node.op_type not in ("Cast", "Constant")]
    return {
        "nodes": len(made),
        "narrow": sum(any(types.get(name) == narrow for name in node.output) for node in made),
        "weights": held[onnx.TensorProto.FLOAT] + held[narrow],
        "weights_narrow": held[narrow],
    }


def _apart(path: Path, mixed: Path, inputs: dict[str, Any]) -> tuple[float | None, str]:
    """How far the written file is from the original on these inputs, without onnxsmith."""
    right = _session(path).run(None, inputs)
    runners = {"": _session, "run by onnx's reference evaluator": lambda file: ReferenceEvaluator(str(file))}
    for said, runner in runners.items():  # noqa: B007 — a CPU has few kernels of bfloat16
        try:
            wrong = runner(mixed).run(None, inputs)
            break
        except Exception:  # noqa: BLE001 — the next one may run it
            continue
    else:
        return None, "neither onnxruntime nor onnx's reference evaluator runs the file"
    scale = [max(float(np.sqrt(np.mean(np.square(a, dtype=np.float64)))), 1e-12) for a in right]
    far = [float(np.abs(a - b.astype(np.float32)).max()) / s for a, b, s in zip(right, wrong, scale, strict=True)]
    return max(far), said


def _session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def rows(only: list[str]) -> Iterator[Row]:
    """A row for each model."""
    for name, asked in MODELS.items():
        if only and not any(text in name for text in only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                yield bisected(name, asked, Path(folder))
            except onnxsmith.OnnxsmithError as error:
                said = f"{error.problem.id}: {error.problem.what}"
                yield Row(name, asked.kind, asked.to, "refused", 0.0, 0.0, 0, 0, 0, 0, 0, "", None, said)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--jsonl", type=Path)
    asked = parser.parse_args()
    found = []
    for row in rows(asked.only):
        found.append(row)
        after = "not run" if row.after is None else f"{row.after:.2g}"
        print(
            f"{row.model:31} {row.to:8} {row.verdict:8} {row.seconds:6.1f} s ({row.processor:.1f})  "
            f"nodes {row.narrow} of {row.nodes}, {row.kept} kept; weights {row.weights_narrow} of {row.weights}; "
            f"off by {after}; all narrow: {row.before}; {row.note}",
            flush=True,
        )
        if asked.jsonl:
            with asked.jsonl.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
    done = [row for row in found if row.verdict == "done" and row.seconds <= SECONDS]
    agree = [row for row in done if row.after is not None and row.after <= 2 * TOLERANCE]
    print(f"{len(done)} of {len(found)} done within {SECONDS:.0f} s; {len(agree)} agree in a plain session")
    return 0 if len(done) == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
