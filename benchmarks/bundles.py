"""Bundles of three models in every form: did they run in the real client, and how far are they from the recorded
outputs?

    python benchmarks/bundles.py [--node-modules FOLDER] [--onnxruntime-root FOLDER]

The models: the super-resolution network of examples/66_super_resolution, a small convolutional classifier, and a
language model of two layers with seeded random weights. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import onnxsmith  # noqa: E402
from onnxsmith.base.report.parts.target_checks import Bundle  # noqa: E402
from tests.deployment.bundles import models, texts  # noqa: E402

FORMS = ("python", "web", "triton", "tensorrt", "cpp", "transformers-js", "genai")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--node-modules", type=Path)
    parser.add_argument("--onnxruntime-root", type=Path)
    given = parser.parse_args()
    clients = {"node_modules": given.node_modules, "onnxruntime": given.onnxruntime_root}
    clients = {name: path for name, path in clients.items() if path is not None}
    print("| model | form | part | result | largest difference | seconds | detail |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, path, task, parameters in made(Path(folder)):
            for form in FORMS:
                wrong += not row(name, path, form, task, parameters, clients, Path(folder))
    return 1 if wrong else 0


def made(folder: Path) -> list[tuple[str, Path, str, dict[str, Any]]]:
    """The models with their tasks and parameters."""
    large = folder / "superres.onnx"
    dynamic = {"x": {0: "batch", 2: "height", 3: "width"}}
    example = f"{ROOT / 'examples' / '66_super_resolution' / 'model.py'}:build"
    assert onnxsmith.export(example, output=large, dynamic=dynamic).ok
    texts.language_model(folder / "llama")
    words = folder / "llama.onnx"
    assert onnxsmith.export(str(folder / "llama"), output=words, task="text-generation-with-past").ok
    return [
        ("super-resolution", large, "super-resolution", {}),
        ("classifier", models.classifier(folder), "image-classification", {"mean": (0.5,), "std": (0.25,)}),
        ("language model", words, "text-generation", {"tokenizer": folder / "llama"}),
    ]


def row(
    name: str, path: Path, form: str, task: str, parameters: dict[str, Any], clients: dict[str, Path], folder: Path
) -> bool:
    """Prints a line for each part of a bundle. A form without processing for the task gets the tensors."""
    target = folder / f"{form}-{path.stem}"
    for chosen, settings in ((task, parameters), ("tensors", {})):
        start = time.monotonic()
        try:
            result = onnxsmith.bundle(
                path, target, form=form, task=chosen, processing=settings, clients=clients, force=True
            )
        except onnxsmith.OnnxsmithError as error:
            if error.problem.id == "bundle/not-for-form" and chosen == task:
                continue
            print(f"| {name} | {form} | | refused | | | {error.problem.id}: {error.problem.what} |")
            return error.problem.id in ("bundle/not-for-form", "bundle/task-mismatch")
        seconds = time.monotonic() - start
        for one in result.report.part(Bundle).checks:
            apart = "" if one.largest is None else f"{one.largest:.1e}"
            print(
                f"| {name} | {form} | {one.name} | {one.state} | {apart} | {seconds:.1f} | {one.detail} |", flush=True
            )
        return result.ok
    return True


if __name__ == "__main__":
    sys.exit(main())
