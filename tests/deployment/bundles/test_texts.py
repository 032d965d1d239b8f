"""Bundles for text: tokens and scores are those of transformers, in Python, onnxruntime-genai and transformers.js."""

from __future__ import annotations

import hashlib
import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.deployment.bundles import clients, nodejs
from tests.deployment.bundles import texts
from tests.deployment.bundles.models import checks, identity, linear
from tests.exports import compared_once

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

MODULES = Path(__file__).parent / "clients" / "text" / "node_modules"
needs_genai = pytest.mark.skipif(
    clients.version("onnxruntime-genai") is None, reason="onnxruntime-genai is not installed, or has no wheel for here"
)
needs_transformers_js = pytest.mark.skipif(
    nodejs.node() is None or not (MODULES / "@huggingface" / "transformers").is_dir(),
    reason="no Node.js, or `npm ci` was not run in tests/deployment/bundles/clients/text: `make test-all` does",
)


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Any]:
    """The file of a language model, its folder, and the torch module."""
    folder = tmp_path_factory.mktemp("generator")
    model = texts.language_model(folder / "llama")
    path = folder / "llama.onnx"
    with compared_once():
        assert onnxsmith.export(str(folder / "llama"), output=path, task="text-generation-with-past").ok
    return path, folder / "llama", model


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Any]:
    """The file of a classifier of texts, its folder, and the torch module."""
    folder = tmp_path_factory.mktemp("classifier")
    model = texts.classifier(folder / "bert")
    path = folder / "bert.onnx"
    with compared_once():
        assert onnxsmith.export(str(folder / "bert"), output=path, task="text-classification").ok
    return path, folder / "bert", model


def bundled(made: tuple[Path, Path, Any], target: Path, form: str, task: str) -> Any:
    clients = {"node_modules": MODULES} if MODULES.is_dir() else {}
    result = onnxsmith.bundle(made[0], target, form=form, task=task, processing={"tokenizer": made[1]}, clients=clients)
    assert result.ok, result.report.problems
    return result


def recorded(folder: Path) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((folder / "golden" / "text.json").read_text(encoding="utf-8"))
    return held


def continued(made: tuple[Path, Path, Any], held: dict[str, Any]) -> list[int]:
    """The tokens that transformers writes on, greedily."""
    ids = torch.tensor([held["ids"]])
    with torch.no_grad():
        found = made[2].generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=len(held["tokens"]), do_sample=False
        )
    return [int(one) for one in found[0, len(held["ids"]) :]]


def test_python_writes_the_tokens_of_transformers(generator: Any, tmp_path: Path) -> None:
    result = bundled(generator, tmp_path / "o", "python", "text-generation")
    assert checks(result.report)["python runner"].state == "equal"
    held = recorded(tmp_path / "o")
    import transformers

    assert held["ids"] == transformers.AutoTokenizer.from_pretrained(generator[1]).encode(held["text"])
    assert len(set(held["tokens"])) > 4, "the model repeats itself, so that the test shows little"
    assert held["tokens"] == continued(generator, held)


@needs_genai
def test_genai_writes_the_tokens_of_transformers(generator: Any, tmp_path: Path) -> None:
    result = bundled(generator, tmp_path / "o", "genai", "text-generation")
    assert checks(result.report)["genai generator"].state == "equal"
    assert "genai generator: ran, equal to " in result.report.headline
    assert "2 inputs and 1 text" in result.report.headline
    held = recorded(tmp_path / "o")
    assert held["tokens"] == continued(generator, held)


@needs_genai
def test_genai_sees_another_token(generator: Any, tmp_path: Path) -> None:
    bundled(generator, tmp_path / "o", "genai", "text-generation")
    file = tmp_path / "o" / "golden" / "text.json"
    held = recorded(tmp_path / "o")
    file.write_text(json.dumps({**held, "tokens": [*held["tokens"][:-1], 7]}), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "verify.py"], cwd=file.parents[1], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "the new tokens are" in done.stdout
    assert "'golden/text.json' is not the file that was verified" in done.stdout


@needs_genai
@pytest.mark.parametrize("name", ["model/model.onnx", "golden/0_output_0.bin", "golden/1_input_0.bin"])
def test_genai_replays_the_golden_data(generator: Any, tmp_path: Path, name: str) -> None:
    """A changed array is found by its numbers also if somebody wrote its digest anew."""
    bundled(generator, tmp_path / "o", "genai", "text-generation")
    file, index = tmp_path / "o" / name, tmp_path / "o" / "bundle.json"
    if name.endswith(".onnx"):
        model = onnx.load(file)
        weight = max(model.graph.initializer, key=lambda one: len(one.raw_data))
        weight.raw_data = np.roll(numpy_helper.to_array(weight), 1).tobytes()
        data = model.SerializeToString()
    else:
        data = bytes(file.stat().st_size)
    file.write_bytes(data)
    held = json.loads(index.read_text())
    held["files"][name] = hashlib.sha256(data).hexdigest()
    index.write_text(json.dumps(held))
    done = subprocess.run([sys.executable, "-B", "verify.py"], cwd=tmp_path / "o", capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 1
    assert "differs on input" in done.stdout


def test_declared_ranges_without_the_recorded_text_are_refused(classifier: Any, tmp_path: Path) -> None:
    how: dict[str, Any] = {"task": "text-classification", "processing": {"tokenizer": classifier[1]}}
    symbol = str(onnxsmith.load(classifier[0]).graph.inputs[0].shape[0])
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(classifier[0], tmp_path / "o", form="python", dim_ranges={symbol: (2, 4, 8)}, **how)
    assert caught.value.problem.id == "bundle/dim-range"
    assert "the recorded text" in caught.value.problem.what


def test_the_folder_for_genai_names_the_caches(generator: Any, tmp_path: Path) -> None:
    bundled(generator, tmp_path / "o", "genai", "text-generation")
    held = json.loads((tmp_path / "o" / "genai_config.json").read_text())["model"]
    decoder = held["decoder"]
    assert (held["type"], held["vocab_size"], held["context_length"]) == ("llama", generator[2].config.vocab_size, 128)
    assert (decoder["num_hidden_layers"], decoder["num_key_value_heads"], decoder["head_size"]) == (2, 2, 8)
    assert decoder["inputs"]["past_key_names"] == "past_key_values.%d.key"
    assert (tmp_path / "o" / decoder["filename"]).is_file()


@needs_transformers_js
@pytest.mark.parametrize(("kind", "task"), [("generator", "text-generation"), ("classifier", "text-classification")])
def test_transformers_js_loads_the_folder(kind: str, task: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    made = request.getfixturevalue(kind)
    result = bundled(made, tmp_path / "o", "transformers-js", task)
    assert checks(result.report)["transformers.js pipeline"].state == "equal"
    held = recorded(tmp_path / "o")
    if task == "text-generation":
        assert held["tokens"] == continued(made, held)
    ran = pasted(tmp_path / "o")
    assert ran.returncode == 0, ran.stderr
    assert ("generated_text" if task == "text-generation" else "score") in ran.stdout
    held["ids"][0] += 1
    (tmp_path / "o" / "golden" / "text.json").write_text(json.dumps(held), encoding="utf-8")
    entry = (MODULES / "@huggingface" / "transformers" / "dist" / "transformers.node.mjs").as_uri()
    engine = nodejs.node()
    assert engine is not None
    words = [engine[0], "verify.mjs", entry]
    done = subprocess.run(words, cwd=tmp_path / "o", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith('"golden/text.json" is not the file that was verified\nthe tokens of the text are')


def pasted(folder: Path) -> subprocess.CompletedProcess[str]:
    """The first program of the README, in the place that the README names, started in another folder."""
    (folder / "node_modules").symlink_to(MODULES)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    (folder / "try.mjs").write_text(readme.partition("```js\n")[2].partition("```")[0], encoding="utf-8")
    engine = nodejs.node()
    assert engine is not None
    return subprocess.run([engine[0], folder / "try.mjs"], cwd="/", capture_output=True, text=True, check=False)


@needs_genai
def test_the_readme_for_genai_runs(generator: Any, tmp_path: Path) -> None:
    bundled(generator, tmp_path / "o", "genai", "text-generation")
    readme = (tmp_path / "o" / "README.md").read_text(encoding="utf-8")
    program = readme.partition("```python\n")[2].partition("```")[0]
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=tmp_path / "o", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_folder_for_transformers_js_has_its_layout(classifier: Any, tmp_path: Path) -> None:
    bundled(classifier, tmp_path / "o", "transformers-js", "text-classification")
    here = {file.relative_to(tmp_path / "o").as_posix() for file in (tmp_path / "o").rglob("*") if file.is_file()}
    assert {"config.json", "tokenizer.json", "tokenizer_config.json", "onnx/model.onnx"} <= here


def test_scores_are_those_of_transformers(classifier: Any, tmp_path: Path) -> None:
    result = bundled(classifier, tmp_path / "o", "python", "text-classification")
    assert checks(result.report)["python runner"].state == "equal"
    held = recorded(tmp_path / "o")
    with torch.no_grad():
        scores = torch.softmax(classifier[2](torch.tensor([held["ids"]])).logits, -1)[0]
    expected = {classifier[2].config.id2label[at]: float(score) for at, score in enumerate(scores)}
    assert {label for label, _ in held["scores"]} == {"bad", "so-so", "good"}
    assert all(abs(expected[label] - score) <= 1e-5 for label, score in held["scores"])


def test_the_processing_passes_strict_types(generator: Any, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    bundled(generator, tmp_path / "o", "python", "text-generation")
    words = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--ignore-missing-imports", "processing.py"]
    done = subprocess.run(words, cwd=tmp_path / "o", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def refused(*words: Any, **how: Any) -> str:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(*words, **how)
    return caught.value.problem.id


def test_without_a_tokenizer(classifier: Any, tmp_path: Path) -> None:
    how: dict[str, Any] = {"form": "python", "task": "text-classification"}
    assert refused(classifier[0], tmp_path / "o", **how) == "bundle/no-tokenizer"
    assert refused(classifier[0], tmp_path / "o", processing={"tokenizer": tmp_path}, **how) == "bundle/no-tokenizer"


def test_models_that_take_no_text(generator: Any, classifier: Any, tmp_path: Path) -> None:
    for task in ("text-classification", "text-generation"):
        how: dict[str, Any] = {"task": task, "processing": {"tokenizer": generator[1]}}
        assert refused(linear(tmp_path), tmp_path / "o", form="python", **how) == "bundle/task-mismatch"
    how = {"task": "text-generation", "processing": {"tokenizer": classifier[1]}}
    assert refused(classifier[0], tmp_path / "o", form="genai", **how) == "bundle/task-mismatch"
    assert refused(generator[0], tmp_path / "o", form="genai") == "bundle/not-for-form"
    assert refused(generator[0], tmp_path / "o", form="transformers-js") == "bundle/not-for-form"
    plain = identity(tmp_path, ("input_ids", "y", TensorProto.INT64, ["b", "n"]))
    assert refused(plain, tmp_path / "o", form="python", **how) == "bundle/task-mismatch"


def test_a_changed_tokenizer_fails(generator: Any, tmp_path: Path) -> None:
    bundled(generator, tmp_path / "o", "python", "text-generation")
    folder = tmp_path / "other"
    shutil.copytree(tmp_path / "o", folder)
    held = recorded(folder)
    (folder / "golden" / "text.json").write_text(json.dumps({**held, "text": "another"}), encoding="utf-8")
    processing = runpy.run_path(str(folder / "processing.py"))
    model = type("Model", (), {"run": lambda self, inputs: {}})()
    processing["record"].__globals__["generate"] = lambda *_: held["tokens"]
    apart, why = processing["check_golden"](model)
    assert np.isinf(apart)
    assert why.startswith("its ids are")
