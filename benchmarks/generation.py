"""Exports models with a state and generates with the files: caches of keys and values, windows, recurrent states.

    python benchmarks/generation.py               every family
    python benchmarks/generation.py mamba lfm2    some of them

Each model is tiny, with random weights, from `benchmarks/generating/families.py`. A file counts as right if it
generates twelve tokens one by one, at batch 1 and 3, from an empty state (a text-to-text or speech model: from that
of the first token), with the logits of PyTorch; as partly right if it says in the headline that it takes a batch of 1
only, and generates that. Each family runs in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from generating.families import FAMILIES, configuration
from generating.judge import TOLERANCE, steps

TIME = 400
"""Seconds for one family; a choice: ten times what the slowest took."""


def one(name: str) -> dict[str, Any]:
    """Exports one family and generates with the file."""
    import transformers

    import onnxsmith

    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    task = FAMILIES[name][0]
    kind = {"text-generation": "CausalLM", "text2text-generation": "Seq2SeqLM"}.get(task, "SpeechSeq2Seq")
    with tempfile.TemporaryDirectory() as folder:
        config = configuration(name)
        torch.manual_seed(0)
        model = getattr(transformers, f"AutoModelFor{kind}").from_config(config).float().eval()
        model.save_pretrained(folder)
        file = str(Path(folder) / "model.onnx")
        begun = time.monotonic()
        try:
            result = onnxsmith.export(folder, task=f"{task}-with-past", output=file)
        except onnxsmith.OnnxsmithError as error:
            problem = error.problem
            return {"export": f"{problem.id}: {problem.what}", "seconds": time.monotonic() - begun}
        except Exception as error:  # noqa: BLE001  # counted as what it is: no Problem
            return {"export": f"BARE {type(error).__name__}: {error}", "seconds": time.monotonic() - begun}
        found: dict[str, Any] = {"export": result.report.headline.partition(": ")[2]}
        found["seconds"] = time.monotonic() - begun
        if result.path is None:
            return found
        for batch in (1, 3):
            try:
                found[f"batch {batch}"] = steps(file, model, batch)
            except Exception as error:  # noqa: BLE001  # a file that does not run is a result
                found[f"batch {batch}"] = f"{type(error).__name__}: {error}"
    return found


def judged(found: dict[str, Any]) -> str:
    """Whether both batches have PyTorch's logits."""
    good = [isinstance(figure, float) and figure < TOLERANCE for figure in figures(found)]
    if all(good):
        return "right"
    return "partly" if good[0] and "takes a batch of 1 only" in found["export"] else "WRONG"


def figures(found: dict[str, Any]) -> list[Any]:
    """The largest difference at each batch, or why there is none."""
    return [found.get(f"batch {batch}", "") for batch in (1, 3)]


def row(found: dict[str, Any]) -> str:
    """What the export said, the largest differences, the time."""
    shown = [f"{figure:.1e}" if isinstance(figure, float) else str(figure)[:90] for figure in figures(found)]
    return " | ".join([found["export"][:150], *shown, f"{found.get('seconds', 0):.0f} s"])


def main() -> None:
    """Prints a row for each family, and the count."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2])))
        return
    verdicts = []
    chosen = sys.argv[1:] or list(FAMILIES)
    for name in chosen:
        command = [sys.executable, __file__, "--one", name]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=TIME, check=True)
            found = json.loads(ran.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            found = {"export": f"took longer than {TIME} s"}
        except subprocess.CalledProcessError as error:
            found = {"export": f"ended with {error.returncode}: {error.stderr.splitlines()[-1:]}"}
        verdict = judged(found)
        verdicts.append(verdict)
        print(f"| {name} | {verdict} | {row(found)} |", flush=True)
    right, partly = verdicts.count("right"), verdicts.count("partly")
    print(f"{right} of {len(chosen)} generate as PyTorch does, {partly} more as the headline says")


if __name__ == "__main__":
    main()
