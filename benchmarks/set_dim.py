"""`set-dim`: networks exported with fixed shapes, whose batch is made symbolic and verified at other sizes.

    python benchmarks/set_dim.py [--folder .bench-set-dim] [--only CASE …]

A case is NETWORK-EXPORTER-BATCH: a network of `models/architectures.py` or `models/fixed.py`, `ts` (the TorchScript
exporter), `new` (torch's exporter) or `ours` (`onnxsmith.export`), and the batch of the example. Prints a line for each
case, then the number that became symbolic: verified at the exported batch N, and row by row at 1, N+1 and 2N+1.
"""

from __future__ import annotations

import time
from pathlib import Path

from measuring.cases import run

CASES = (
    "bert-ts-1", "bert-new-2", "distilbert-new-1", "gpt2-ts-2", "gpt2-new-1", "llama-new-2", "llama-ours-1", "t5-new-1",
    "bart-ts-2", "opt-new-2", "vit-ts-1", "vit-new-2", "clip_vision-ours-2", "dinov2-new-1", "swin-ts-2", "swin-new-1",
    "segformer-new-2", "detr-ts-1", "deberta_v2-new-2", "convnext-ours-1", "resnet-ts-1", "mobilenet_v2-new-2",
    "lstm-ts-2", "gru-ours-2", "separable-ts-2", "unet-new-1", "unet-ts-2", "attention-new-2", "sampler-ts-1",
    "stateful-new-2", "albert-new-1", "bart-new-1", "bert-new-1", "clip_text-ts-1", "clip_vision-ts-1", "convnext-ts-1",
    "deberta_v2-ts-1", "detr-new-2", "dinov2-ts-2", "gemma-new-1", "gpt_neox-ts-1", "gru-ts-1", "lstm-new-1",
    "mistral-new-2", "mobilenet_v2-ts-1", "phi-ts-1", "qwen2-new-2", "resnet-new-2", "segformer-ts-1",
    "separable-new-1", "t5-ts-1", "vit-new-1", "wav2vec2-ts-1", "spectrum-ts-1", "streaming-ts-1", "streaming-new-2",
    "last-ts-2", "last-new-1", "written-ts-2", "heads-new-1",
)  # fmt: skip
FOLDER = Path(__file__).parent.parent / ".bench-set-dim"
TARGET = 54


def one(case: str, folder: Path) -> str:
    """Exports the network of a case if its file is not there, makes the batch symbolic, and says how it went."""
    import torch
    from models import fixed
    from models.architectures import BATCH, Network, build

    import onnxsmith
    from onnxsmith.base.report.parts.edits import Edits
    from onnxsmith.base.report.parts.verification import Verification

    name, way, batch = case.split("-")[0], case.split("-")[1], int(case.split("-")[2])
    own = {
        "unet": lambda: Network(fixed.UNet(), {"x": torch.randn(BATCH, 3, 32, 32)}, {"x": {0: "batch"}}),
        "attention": lambda: Network(fixed.Attention(), {"x": torch.randn(BATCH, 12, 16)}, {"x": {0: "batch"}}),
        "sampler": lambda: Network(fixed.Sampler(), {"x": torch.randn(BATCH, 4, 16, 16)}, {"x": {0: "batch"}}),
        "spectrum": lambda: Network(fixed.Spectrum(), {"x": torch.randn(BATCH, 320)}, {"x": {0: "batch"}}),
        "streaming": lambda: Network(
            fixed.Streaming(),
            {"x": torch.randn(BATCH, 5, 8), "z": torch.randn(BATCH, 4), "h": torch.randn(1, BATCH, 16)},
            {"x": {0: "batch"}, "z": {0: "batch"}, "h": {1: "batch"}},
        ),
        "last": lambda: Network(
            fixed.Last(),
            {"words": torch.randint(0, 30, (BATCH, 6)), "lengths": torch.randint(1, 7, (BATCH,))},
            {"words": {0: "batch"}, "lengths": {0: "batch"}},
        ),
        "written": lambda: Network(fixed.Written(), {"x": torch.randn(BATCH, 6, 9)}, {"x": {0: "batch"}}),
        "heads": lambda: Network(fixed.Heads(), {"x": torch.randn(BATCH, 10, 16)}, {"x": {0: "batch"}}),
        "stateful": lambda: Network(fixed.Stateful(), {"x": torch.randn(BATCH, 10, 8)}, {"x": {0: "batch"}}),
    }
    torch.manual_seed(0)
    network = own[name]() if name in own else build(name)
    network.module.eval()
    batched = {input_: next(axis for axis, dim in axes.items() if dim == "batch")
               for input_, axes in network.dynamic.items() if "batch" in axes.values()}  # fmt: skip
    inputs = {key: value.narrow(batched[key], 0, batch) if key in batched else value
              for key, value in network.inputs.items()}  # fmt: skip
    file = folder / f"{case}.onnx"
    if not file.exists():
        folder.mkdir(exist_ok=True)
        names, values = list(inputs), tuple(inputs.values())
        with torch.no_grad():
            if way == "ours":
                onnxsmith.export(network.module, values, output=file, input_names=names, verify=False)
            else:
                options = (
                    {"dynamo": True, "external_data": False, "verbose": False} if way == "new" else {"dynamo": False}
                )
                torch.onnx.export(network.module, values, file, input_names=names, **options)
    given = {value.name for value in onnxsmith.load(file).graph.inputs}
    dims = [f"{key}:{axis}=batch" for key, axis in batched.items() if key in given]
    start = time.monotonic()
    try:
        with onnxsmith.edit(file, folder / f"{case}_dynamic.onnx") as m:
            m.set_dim(dims)
    except onnxsmith.OnnxsmithError as error:
        found = error.problem
        return f"no   {found.id} {found.where}: {found.what}; {found.why}"
    assert m.result is not None
    parts = m.result.report.parts
    edits = next(part for part in parts if isinstance(part, Edits))
    part = next(part for part in parts if isinstance(part, Verification))
    rows = any("each row agrees with the original" in note for note in part.notes)
    said = f"{len(edits.notes)} replaced, {time.monotonic() - start:.0f} s"
    return f"{'yes ' if rows else 'part'} {said}{'; ' if part.untried else ''}{'; '.join(part.untried)}"


if __name__ == "__main__":
    run(__file__, __doc__, one, CASES, FOLDER, TARGET, "are symbolic and verified at other sizes")
