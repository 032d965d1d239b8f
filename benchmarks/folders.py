"""How well `compare ORIGINAL FOLDER` tells folders of graphs that are right from folders with a planted fault.

    python benchmarks/folders.py [FAMILY ...] [--folder FOLDER]

For ten families of transformers, a tiny model with random weights is saved, and its graphs are exported in a layout of
onnxruntime-genai, optimum or transformers.js. The model builder of onnxruntime-genai writes an eleventh folder. Each
folder is compared with its model: the verdict has to be `done`.
Then faults are planted in copies of the folders, one at a time: wrong rotations, swapped caches, positions off by one,
inverted masks, other weights, stale tokenizers. The verdict has to be `different`, and the headline has to name the
file with the fault, and the call where it is known. `--folder` keeps the folders, and uses them again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parent.parent))

import onnxsmith
from tests.comparison.outputs import graph_folders as made

Edit = Callable[[onnx.ModelProto], None]


@dataclass(frozen=True)
class Fault:
    """A fault in a copy of a family's folder. `change` plants it in a file. The headline has to contain the file's
    name, and `says`."""

    family: str
    name: str
    file: str
    change: Callable[[Path], None]
    says: str = ""


def edited(change: Edit) -> Callable[[Path], None]:
    """Returns a function that changes the model in a file."""

    def edit(path: Path) -> None:
        model = onnx.load(path)
        change(model)
        path.with_name(f"{path.name}.data").unlink(missing_ok=True)
        onnx.save(model, path)

    return edit


def through(name: str, op: str, constant: object = None, *, first: bool = False) -> Edit:
    """Puts an operator behind an input. A constant is its second operand, or with `first` its first."""

    def change(model: onnx.ModelProto) -> None:
        for node in model.graph.node:
            node.input[:] = [f"{name}_wrong" if one == name else one for one in node.input]
        operands = [name]
        if constant is not None:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(constant), f"{name}_constant"))
            operands.insert(0 if first else 1, f"{name}_constant")
        model.graph.node.insert(0, helper.make_node(op, operands, [f"{name}_wrong"]))

    return change


def swapped_inputs(one: str, other: str) -> Edit:
    """Swaps two inputs inside of the graph."""

    def change(model: onnx.ModelProto) -> None:
        names = {one: other, other: one}
        for node in model.graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]

    return change


def swapped_outputs(one: str, other: str) -> Edit:
    """Swaps the names of two outputs."""

    def change(model: onnx.ModelProto) -> None:
        names = {one: other, other: one}
        for node in model.graph.node:
            node.output[:] = [names.get(name, name) for name in node.output]
            node.input[:] = [names.get(name, name) for name in node.input]

    return change


def rotation(factor: float) -> Edit:
    """Changes the frequencies of a rotation: the constants with falling powers of the base 10,000."""

    def change(model: onnx.ModelProto) -> None:
        found = 0
        for tensor in model.graph.initializer:
            values = numpy_helper.to_array(tensor)
            flat = values.ravel()
            if values.dtype == np.float32 and flat.size == 4 and np.allclose(flat, 10000.0 ** -(np.arange(4) / 4)):
                wrong = (np.float64(10000 * factor) ** -(np.arange(4) / 4)).astype(np.float32).reshape(values.shape)
                tensor.CopyFrom(numpy_helper.from_array(wrong, tensor.name))
                found += 1
        if not found:
            raise LookupError("the graph has no frequencies of a rotation")

    return change


def shifted(name: str) -> Edit:
    """Shifts the rows of a weight by one."""

    def change(model: onnx.ModelProto) -> None:
        tensor = next(one for one in model.graph.initializer if one.name == name)
        tensor.CopyFrom(numpy_helper.from_array(np.roll(numpy_helper.to_array(tensor), 1, 0), name))

    return change


def scaled(number: int, factor: float) -> Edit:
    """Scales one weight matrix."""

    def change(model: onnx.ModelProto) -> None:
        weights = [one for one in model.graph.initializer if len(one.dims) == 2 and one.data_type == 1]
        tensor = weights[number % len(weights)]
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(factor), tensor.name))

    return change


def words(*listed: str) -> Callable[[Path], None]:
    """Writes a tokenizer with other words."""
    return lambda path: made.tokenizer(path.parent, listed)


def settings(**changed: object) -> Callable[[Path], None]:
    """Changes entries of a JSON file."""

    def change(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))

    return change


def family(name: str, root: Path) -> tuple[Path, Path]:
    """Returns the folder of a model, and the folder of its graphs, which are made if they do not exist."""
    original, graphs = root / name, root / f"{name}-graphs"
    if not graphs.exists():
        model = made.original(name, original)
        made.tokenizer(original)
        new = root / f"{name}-new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        MAKERS[name](model, new)
        for file in ("config.json", "tokenizer.json"):
            shutil.copy(original / file, new)
        new.rename(graphs)
    return original, graphs


def _genai(model: torch.nn.Module, folder: Path) -> None:
    made.decoder(model, folder / "model.onnx")
    made.genai_config(model, folder)


def _built(original: Path, folder: Path) -> None:
    """Runs the model builder of onnxruntime-genai, which needs no network for a local folder."""
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(original), "-o", str(folder)]
    words = [*command, "-p", "fp32", "-e", "cpu", "-c", str(folder.with_name("cache"))]
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})


def _texts(*outputs: str, types: bool = False) -> Callable[[torch.nn.Module, Path], None]:
    def make(model: torch.nn.Module, folder: Path) -> None:
        inputs = {"input_ids": made.ids(), "attention_mask": torch.ones(2, 3, dtype=torch.int64)}
        if types:
            inputs["token_type_ids"] = torch.zeros(2, 3, dtype=torch.int64)
        made.single(model, folder, inputs, outputs)

    return make


MAKERS: Mapping[str, Callable[[torch.nn.Module, Path], None]] = {
    "llama": _genai,
    "built": lambda model, folder: _built(folder.with_name("built"), folder),
    "qwen2": made.two_decoders,
    "mistral": lambda model, folder: _ignored(made.decoder(model, folder / "onnx" / "model.onnx", positions=True)),
    "gpt2": lambda model, folder: _ignored(made.decoder(model, folder / "model.onnx", positions=True)),
    "t5": made.with_encoder,
    "bart": made.with_encoder,
    "whisper": made.with_encoder,
    "bert": _texts("last_hidden_state", types=True),
    "distilbert": _texts("logits"),
    "vit": lambda model, folder: made.single(
        model, folder, {"pixel_values": torch.randn(2, 3, 16, 16)}, ["logits"], "onnx/model.onnx"
    ),
}


def _ignored(_: object) -> None:
    """Takes a result that is not needed."""


KEY, OTHER_KEY, VALUE = "past_key_values.0.key", "past_key_values.1.key", "past_key_values.0.value"
LATER, FIRST = "decoder_with_past_model.onnx", "decoder_model.onnx"
_ONE = np.int64(1)
FAULTS = (
    Fault("llama", "rotation with another base", "model.onnx", edited(rotation(2)), "the first call"),
    Fault("llama", "keys of two layers swapped on input", "model.onnx", edited(swapped_inputs(KEY, OTHER_KEY)),
          "step 2"),
    Fault("llama", "key and value swapped on input", "model.onnx", edited(swapped_inputs(KEY, VALUE)), "step 2"),
    Fault("llama", "keys of two layers swapped on output", "model.onnx",
          edited(swapped_outputs("present.0.key", "present.1.key")), "the first call"),
    Fault("llama", "mask inverted", "model.onnx", edited(through("attention_mask", "Sub", _ONE, first=True)),
          "the first call"),
    Fault("llama", "mask ignored", "model.onnx", edited(through("attention_mask", "Max", _ONE)), "the first call"),
    Fault("llama", "one weight 1% larger", "model.onnx", edited(scaled(3, 1.01)), "the first call"),
    Fault("llama", "words of the tokenizer in another order", "tokenizer.json", words("quick", "the", "brown", "fox")),
    Fault("llama", "another end of a text", "config.json", settings(eos_token_id=5)),
    Fault("built", "the caches of two layers swapped on input", "model.onnx", edited(swapped_inputs(KEY, OTHER_KEY)),
          "step 2"),
    Fault("built", "a table of the rotation shifted by a position", "model.onnx", edited(shifted("cos_cache")),
          "the first call"),
    Fault("built", "a weight 1% larger", "model.onnx", edited(scaled(3, 1.01)), "the first call"),
    Fault("qwen2", "rotation with another base in later calls", LATER, edited(rotation(1.1)), "step 2"),
    Fault("qwen2", "values and keys swapped in later calls", LATER, edited(swapped_inputs(KEY, VALUE)), "step 2"),
    Fault("qwen2", "keys of two layers swapped by the first call", FIRST,
          edited(swapped_outputs("present.0.key", "present.1.key")), "the first call"),
    Fault("qwen2", "mask inverted in later calls", LATER,
          edited(through("attention_mask", "Sub", _ONE, first=True)), "step 2"),
    Fault("qwen2", "another weight in later calls", LATER, edited(scaled(5, 1.02)), "step 2"),
    Fault("mistral", "positions off by one", "model.onnx", edited(through("position_ids", "Add", _ONE)),
          "the first call"),
    Fault("mistral", "positions ignored", "model.onnx", edited(through("position_ids", "Mul", np.int64(0))),
          "the first call"),
    Fault("gpt2", "positions off by one", "model.onnx", edited(through("position_ids", "Add", _ONE)), "the first call"),
    Fault("gpt2", "positions never above 5", "model.onnx", edited(through("position_ids", "Min", np.int64(5))),
          "step 2"),
    Fault("gpt2", "key and value swapped on output", "model.onnx",
          edited(swapped_outputs("present.0.key", "present.0.value")), "the first call"),
    Fault("t5", "mask of the encoder inverted", "encoder_model.onnx",
          edited(through("attention_mask", "Sub", _ONE, first=True))),
    Fault("t5", "keys of the encoder swapped in later calls", LATER,
          edited(swapped_inputs("past_key_values.0.encoder.key", "past_key_values.1.encoder.key")), "step 2"),
    Fault("t5", "mask of the encoder ignored in later calls", LATER,
          edited(through("encoder_attention_mask", "Max", _ONE)), "step 2"),
    Fault("bart", "a weight of the encoder 1% larger", "encoder_model.onnx", edited(scaled(2, 1.01))),
    Fault("bart", "keys of two layers swapped in later calls", LATER,
          edited(swapped_inputs("past_key_values.0.decoder.key", "past_key_values.1.decoder.key")), "step 2"),
    Fault("whisper", "key and value of the encoder swapped", FIRST,
          edited(swapped_outputs("present.0.encoder.key", "present.0.encoder.value")), "the first call"),
    Fault("whisper", "a weight of the first call 1% larger", FIRST, edited(scaled(4, 1.01)), "the first call"),
    Fault("bert", "mask inverted", "model.onnx", edited(through("attention_mask", "Sub", _ONE, first=True))),
    Fault("bert", "types of tokens ignored", "model.onnx", edited(through("token_type_ids", "Mul", np.int64(0)))),
    Fault("distilbert", "mask ignored", "model.onnx", edited(through("attention_mask", "Max", _ONE))),
    Fault("distilbert", "a token missing in the tokenizer", "tokenizer.json",
          words("the", "quick", "brown", "fox", "lazy")),
    Fault("vit", "a weight 1% larger", "model.onnx", edited(scaled(1, 1.01))),
)  # fmt: skip


def planted(fault: Fault, original: Path, graphs: Path, folder: Path) -> tuple[bool, str]:
    """Returns whether the comparison notices the fault and names its place, and the headline."""
    shutil.copytree(graphs, folder)
    fault.change(next(folder.glob(f"**/{fault.file}")))
    report = onnxsmith.compare(original, folder).report
    told = fault.file in report.headline and fault.says in report.headline
    return report.verdict == "different" and told, f"{report.verdict}: {report.headline}"


def other_weights(name: str, graphs: Path, folder: Path) -> tuple[bool, str]:
    """Compares the graphs with a model of the same sizes and other weights."""
    made.original(name, folder, seed=1)
    report = onnxsmith.compare(folder, graphs).report
    return report.verdict == "different", f"{report.verdict}: {report.headline}"


def main() -> None:
    """Compares the folders, and prints each verdict and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("family", nargs="*", default=list(MAKERS))
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    right = seen = tried = 0
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as temporary:
        root = asked.folder or Path(temporary) / "kept"
        root.mkdir(parents=True, exist_ok=True)
        for name in asked.family:
            original, graphs = family(name, root)
            begun = time.monotonic()
            report = onnxsmith.compare(original, graphs).report
            seconds.append(time.monotonic() - begun)
            right += report.verdict == "done"
            print(f"{name:10} {seconds[-1]:5.1f} s  {report.verdict}: {report.headline}", flush=True)
            faults = [fault for fault in FAULTS if fault.family == name]
            results = [(one.name, planted(one, original, graphs, Path(temporary) / f"{name}-{at}"))
                       for at, one in enumerate(faults)]  # fmt: skip
            results.append(("weights of another model", other_weights(name, graphs, Path(temporary) / f"{name}-other")))
            for fault, (is_seen, said) in results:
                tried, seen = tried + 1, seen + is_seen
                print(f"  {'noticed' if is_seen else 'MISSED '} {fault}\n            {said}", flush=True)
    print(f"right folders: {right} of {len(asked.family)} equal; faults: {seen} of {tried} noticed, with their place")
    print(f"seconds of a comparison: median {np.median(seconds):.1f}, largest {max(seconds):.1f}")


if __name__ == "__main__":
    main()
