"""Model packages of onnxruntime: variants are compared, the manifest is onnxruntime's own, and a package that was
changed is found by onnxruntime's own loader."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.target_checks import Bundle
from onnxsmith.deployment.bundles import clients
from tests.deployment.bundles.models import checks, classifier, hostile, linear, written

FORM = "onnxruntime-package"
_SESSION = """
import json, sys
import numpy as np, onnxruntime as ort
context = ort.ModelPackageContext(sys.argv[1])
(component,) = context.get_component_names()
options = ort.SessionOptions()
options.add_provider("CPUExecutionProvider", {})
chosen = context.select_component(component, ort.ModelPackageOptions(options))
session = chosen.create_session()
found = session.run(None, {"x": np.ones((2, 3), np.float32)})[0]
providers = {name: context.get_variant_ep_name(component, name) for name in context.get_variant_names(component)}
print(json.dumps([component, chosen.get_selected_variant_name(), found.tolist(), providers]))
"""
"""A program as a reader of onnxruntime's documentation writes it. It uses nothing of the bundle but the folder."""


@contextmanager
def refused(id_: str, **parts: str) -> Iterator[None]:
    """The block has to raise this problem, whose parts (`what`, `why`, `fix`) contain these texts."""
    with pytest.raises(OnnxsmithError) as caught:
        yield
    found = caught.value.problem
    assert found.id == id_, found
    for part, text in parts.items():
        assert text in getattr(found, part), found


def bundled(model: Path, folder: Path, **how: Any) -> Path:
    result = onnxsmith.bundle(model, folder / "out", form=FORM, **how)
    assert result.ok, result.report.problems
    assert result.path is not None
    return result.path


def ran(program: str | Path, *words: str | Path) -> clients.Finished:
    """Runs a file, or a program as text, with numpy and onnxruntime only."""
    with clients.bare_python("numpy", "onnxruntime") as (place, start):
        if isinstance(program, str):
            (place / "program.py").write_text(program)
            program = place / "program.py"
        return clients.run([*start, program, *words], folder=place)


def weight_changed(model: Path, target: Path, change: Callable[[Any], Any]) -> Path:
    """The model with another first weight."""
    held = onnx.load(model)
    held.graph.initializer[0].CopyFrom(
        numpy_helper.from_array(change(numpy_helper.to_array(held.graph.initializer[0])), "w")
    )
    onnx.save(held, target)
    return target


def half(folder: Path, inside: str = "m") -> Path:
    """`linear` with its multiplication in float16. `inside` is the name of its result."""
    weight = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float16)
    nodes = [
        helper.make_node("Cast", ["x"], ["n"], to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["n", "w"], [inside]),
        helper.make_node("Relu", [inside], ["r"]),
        helper.make_node("Cast", ["r"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(
        nodes,
        "half",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(weight, "w")],
    )
    return written(folder, graph, name="half")


def test_onnxruntime_loads_the_package(tmp_path: Path) -> None:
    model = linear(tmp_path)
    out = bundled(model, tmp_path)
    done = ran(_SESSION, out)
    assert done.status == 0, done.errors
    component, chosen, found, providers = json.loads(done.output)
    assert (component, chosen, providers) == ("linear", "cpu", {"cpu": "CPUExecutionProvider"})
    weight = numpy_helper.to_array(onnx.load(model).graph.initializer[0])
    assert np.allclose(found, np.maximum(np.ones((2, 3), np.float32) @ weight, 0), atol=1e-6)
    assert (out / "model" / "model.onnx").read_bytes() == model.read_bytes()


def test_a_variant_without_its_provider_is_not_run_here(tmp_path: Path) -> None:
    result = onnxsmith.bundle(linear(tmp_path), tmp_path / "out", form=FORM, variants={"cuda": half(tmp_path)})
    assert result.path is not None
    assert checks(result.report)["variant cpu"].state == "equal"
    assert checks(result.report)["variant cuda"].state == "not run"
    assert "variant cuda: not run: the installed onnxruntime lacks CUDAExecutionProvider" in result.report.headline
    readme = (result.path / "README.md").read_text()
    assert "| `cuda` | `CUDAExecutionProvider` | `cuda/model.onnx` | not run here: the provider was missing |" in readme
    note = next(note for note in result.report.part(Bundle).notes if note.startswith("variant cuda"))
    assert "half.onnx; equal to the given model on" in note
    done = ran(result.path / "verify.py", "cuda")
    assert done.status == 3
    assert "lacks CUDAExecutionProvider" in done.output


def test_a_comparison_that_cannot_tell_is_in_the_headline(tmp_path: Path) -> None:
    variants = {"cuda": half(tmp_path, inside="h")}  # the name of a tensor of the given model with other values
    report = onnxsmith.bundle(linear(tmp_path), tmp_path / "out", form=FORM, variants=variants).report
    assert "variant cuda: NOT SURE: MatMul 'h' has different inputs" in report.headline


@pytest.mark.parametrize(
    ("provider", "says"),
    [("tensorrt", "the table tensorrt-10 takes every node"), ("webgpu", "the table webgpu leaves 3 nodes undecided"),
     ("cuda", "no table lists the operators of this provider")],
)  # fmt: skip
def test_the_table_of_the_provider_is_asked(tmp_path: Path, provider: str, says: str) -> None:
    result = onnxsmith.bundle(linear(tmp_path), tmp_path / "out", form=FORM, variants=(f"{half(tmp_path)}@{provider}",))
    assert any(note.startswith(f"variant {provider} ") and says in note for note in result.report.part(Bundle).notes)


def test_a_changed_weight_is_refused(tmp_path: Path) -> None:
    model = linear(tmp_path)
    other = weight_changed(model, tmp_path / "other.onnx", lambda weight: weight + np.float32(0.001))
    with refused("bundle/other-model", what="computes other results", fix="--tolerance 0."):
        onnxsmith.bundle(model, tmp_path / "out", form=FORM, variants={"cuda": other})
    assert not (tmp_path / "out").exists()


def test_a_file_of_its_own_on_the_cpu_is_compared_with_its_own_outputs(tmp_path: Path) -> None:
    model = linear(tmp_path)
    coarse = weight_changed(model, tmp_path / "coarse.onnx", lambda weight: np.round(weight, 2))
    result = onnxsmith.bundle(
        model, tmp_path / "out", form=FORM, tolerance=0.05, variants=(f"{model}@cuda", f"{coarse}@cpu")
    )
    assert result.path is not None
    assert checks(result.report)["variant cpu"].state == "equal"
    done = ran(_SESSION, result.path)
    weight = np.round(numpy_helper.to_array(onnx.load(model).graph.initializer[0]), 2)
    assert np.allclose(json.loads(done.output)[2], np.maximum(np.ones((2, 3), np.float32) @ weight, 0), atol=1e-6)
    own, given = (folder / "golden" / "0_output_0.bin" for folder in (result.path / "cpu", result.path))
    assert own.read_bytes() != given.read_bytes()
    weight_changed(coarse, result.path / "cpu" / "model.onnx", lambda weight: weight * 2)
    done = ran(result.path / "verify.py", "--json", "cpu")
    assert done.status == 1
    wrong = json.loads(done.output)["wrong"]
    assert wrong[0] == "'cpu/model.onnx' is not the file that was verified"
    assert "output 'y' of cpu differs on input 1" in wrong[1]


def test_a_file_for_two_providers_is_there_once(tmp_path: Path) -> None:
    model, narrow = linear(tmp_path), half(tmp_path)
    variants = (f"{narrow}@cuda", f"{narrow}@webgpu", f"{model}@openvino", f"{model}@cpu")
    out = bundled(model, tmp_path, variants=variants)
    assert sorted(file.relative_to(out).as_posix() for file in out.rglob("*.onnx")) == [
        "cuda/model.onnx",
        "model/model.onnx",
    ]
    held = json.loads((out / "manifest.json").read_text())["components"]["linear"]["variants"]
    assert {name: one["variant_directory"] for name, one in held.items()} == {
        "openvino": "model",
        "cpu": "model",
        "cuda": "cuda",
        "webgpu": "cuda",
    }


def test_external_data_is_carried(tmp_path: Path) -> None:
    model = classifier(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        onnx.save(
            onnx.load(model), tmp_path / name / "m.onnx", save_as_external_data=True, location="weights.bin",
            size_threshold=0,
        )  # fmt: skip
    out = bundled(tmp_path / "one" / "m.onnx", tmp_path, variants={"cuda": tmp_path / "two" / "m.onnx"})
    for folder in ("model", "cuda"):
        assert (out / folder / "weights.bin").read_bytes() == (tmp_path / "one" / "weights.bin").read_bytes()
    (out / "model" / "weights.bin").unlink()
    done = ran(out / "verify.py")
    assert done.status == 1
    assert "'model/weights.bin' is missing" in done.output


def test_a_missing_file_is_found_by_onnxruntime(tmp_path: Path) -> None:
    out = bundled(linear(tmp_path), tmp_path)
    (out / "model" / "model.onnx").rename(out / "model" / "other.onnx")
    done = ran(_SESSION, out)
    assert done.status == 1
    assert "NoSuchFile" in done.errors
    (out / "model").rename(out / "moved")
    assert "does not exist" in ran("import sys, onnxruntime as o\no.ModelPackage.open(sys.argv[1])", out).errors


def test_the_manifest_that_onnxruntime_refuses_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnxsmith.deployment.bundles import variants

    monkeypatch.setattr(variants, "OWN", "elsewhere")  # the manifest names a folder that does not exist
    with refused("bundle/client-failed", why="does not exist"):
        onnxsmith.bundle(linear(tmp_path), tmp_path / "out", form=FORM)
    assert not (tmp_path / "out").exists()


WRONG = {
    "no provider": ("half.onnx", "does not name both a file and its execution provider"),
    "no file": ("@cuda", "does not name both a file and its execution provider"),
    "unknown": ("half.onnx@npu", "there is no execution provider 'npu'"),
    "the cpu twice": ("half.onnx@cpu", "two variants are for cpu"),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    half(tmp_path)
    with refused("bundle/variant", what=WRONG[text][1]):
        onnxsmith.bundle(linear(tmp_path), tmp_path / "out", form=FORM, variants=(WRONG[text][0],))
    assert not (tmp_path / "out").exists()


def test_a_model_in_memory_is_for_the_cpu(tmp_path: Path) -> None:
    model = onnx.load(linear(tmp_path))
    with refused("bundle/variant", what="two variants are for cpu: 'MODEL' and"):
        onnxsmith.bundle(model, tmp_path / "out", form=FORM, variants={"cpu": half(tmp_path)})
    out = onnxsmith.bundle(model, tmp_path / "out", form=FORM, variants={"cuda": half(tmp_path)}).path
    assert out is not None
    assert json.loads(ran(_SESSION, out).output)[1] == "cpu"


def test_a_size_without_a_name_that_a_variant_fixes(tmp_path: Path) -> None:
    model = onnx.load(linear(tmp_path))
    model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    onnx.save(model, tmp_path / "open.onnx")
    fixed(model)
    onnx.save(model, tmp_path / "fixed.onnx")
    with refused("bundle/other-model", fix="open.onnx x:0=1 -o fixed_model.onnx"):
        onnxsmith.bundle(tmp_path / "open.onnx", tmp_path / "out", form=FORM,
                         variants={"cuda": tmp_path / "fixed.onnx"})  # fmt: skip


def test_a_provider_twice(tmp_path: Path) -> None:
    file = half(tmp_path)
    with refused("bundle/variant", what="two variants are for cuda"):
        onnxsmith.bundle(linear(tmp_path), tmp_path / "out", form=FORM,
                         variants=(f"{file}@cuda", f"{file}@CUDAExecutionProvider"))  # fmt: skip


def test_a_missing_variant(tmp_path: Path) -> None:
    with refused("model/not-found"):
        onnxsmith.bundle(linear(tmp_path), tmp_path / "out", form=FORM, variants={"cuda": tmp_path / "gone.onnx"})


def test_another_form_has_no_variants(tmp_path: Path) -> None:
    with refused("bundle/variant", what="the form python has no variants"):
        onnxsmith.bundle(linear(tmp_path), tmp_path / "out", form="python", variants={"cuda": half(tmp_path)})


def renamed(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = model.graph.node[1].output[0] = "z"


def doubled(model: onnx.ModelProto) -> None:
    model.graph.output.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, ["batch", 2]))


def fixed(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1


@pytest.mark.parametrize(
    ("change", "says"),
    [(renamed, "'z' (float), not 'y' (float)"), (doubled, "'h' (float), not none"),
     (fixed, "fixes sizes that the model leaves open: batch=1")],
)  # fmt: skip
def test_another_interface_is_refused(tmp_path: Path, change: Callable[[onnx.ModelProto], None], says: str) -> None:
    model = linear(tmp_path)
    other = onnx.load(model)
    change(other)
    onnx.save(other, tmp_path / "other.onnx")
    with refused("bundle/other-model", what=says):
        onnxsmith.bundle(model, tmp_path / "out", form=FORM, variants={"cuda": tmp_path / "other.onnx"})


def test_an_operator_that_no_runtime_here_knows(tmp_path: Path) -> None:
    model = linear(tmp_path)
    other = onnx.load(model)
    other.graph.node[1].op_type, other.graph.node[1].domain = "Own", "own.domain"
    other.opset_import.append(helper.make_opsetid("own.domain", 1))
    onnx.save(other, tmp_path / "other.onnx")
    with refused("runtime/unknown-operator", where="other.onnx", fix="other.onnx --nodes"):
        onnxsmith.bundle(model, tmp_path / "out", form=FORM, variants={"cuda": tmp_path / "other.onnx"})


def test_the_report_identifies_the_files_of_variants(tmp_path: Path) -> None:
    file = half(tmp_path)
    for number, variants in enumerate(({"cuda": file}, (f"{file}@cuda",))):
        report = onnxsmith.bundle(linear(tmp_path), tmp_path / str(number), form=FORM, variants=variants).report
        assert str(file) in [one.path for one in report.models if one.role == "read"]


def test_an_onnxruntime_without_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = clients.bare_python

    @contextmanager
    def older(*packages: str) -> Iterator[tuple[Path, list[str]]]:
        with bare("numpy") as (place, words):
            (place / "onnxruntime.py").write_text("__version__ = '1.0'")
            yield place, words

    out = bundled(linear(tmp_path), tmp_path)
    with older() as (_, words):
        done = clients.run([*words, out / "verify.py"], folder=out)
    assert done.status == 3
    assert "onnxruntime 1.0 cannot load model packages" in done.output
    monkeypatch.setattr(clients, "bare_python", older)
    with refused("bundle/old-client", fix="pip install --upgrade onnxruntime"):
        onnxsmith.bundle(linear(tmp_path), tmp_path / "other", form=FORM)
    assert not (tmp_path / "other").exists()


def test_an_older_package_is_replaced(tmp_path: Path) -> None:
    model = linear(tmp_path)
    out = bundled(model, tmp_path, variants={"cuda": half(tmp_path)})
    first = (out / "manifest.json").read_bytes(), (out / "bundle.json").read_bytes()
    bundled(model, tmp_path, variants={"cuda": half(tmp_path)})
    assert first == ((out / "manifest.json").read_bytes(), (out / "bundle.json").read_bytes())
    (out / "mine.txt").write_text("mine")
    with refused("bundle/changed"):
        bundled(model, tmp_path)
    bundled(model, tmp_path, force=True)
    assert not (out / "cuda").exists()


def test_hostile_names_run_and_pass_strict_types(tmp_path: Path) -> None:
    out = bundled(hostile(tmp_path), tmp_path)
    pytest.importorskip("mypy")
    words = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "golden.py", "verify.py"]
    done = subprocess.run(words, cwd=out, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
