"""Ranges of sizes bound what an export tries, what torch captures, and what later verbs try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import onnxsmith
from onnxsmith import OnnxsmithError, Verify
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.exporter.pretrained.example_makers import ranges as of_processor
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import dim_ranges
from onnxsmith.graph.structure.dim_ranges import Range


class Detector(torch.nn.Module):
    """Is exported right for pictures of 8 pixels and more only: a smaller picture lacks the window's rows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.conv(x)[:, :, :8, :8].flatten(1)
        if torch.compiler.is_compiling():
            return found
        return found if min(x.shape[2:]) >= 8 else found.new_zeros(1, 256)


EXAMPLE = (torch.rand(1, 3, 96, 80),)
DYNAMIC = "x:2=height,3=width"


def part(found: Any) -> Verification:
    return getattr(found, "report", found).part(Verification)


def exported(output: Path | None = None, sizes: Any = ("height=64..256", "width=64.."), **more: Any) -> Any:
    return onnxsmith.export(
        Detector(), EXAMPLE, output=output, **{"dynamic": DYNAMIC, "verify": Verify(sizes=sizes), **more}
    )


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("ranges") / "d.onnx"
    found = exported(file)
    assert found.report.verdict.exit_code == 0, found.report.headline
    assert "height was tried from 64 to 256 only" in found.report.headline
    assert part(found).ranges == {"height": "64..256", "width": "64.."}
    sizes = part(found).sizes or {}
    assert len(sizes["height"]) > 3
    assert {64, 256} <= set(sizes["height"]) <= set(range(64, 257))
    assert min(sizes["width"]) == 64
    return file


def test_without_a_range_the_same_model_is_refused() -> None:
    assert exported(sizes=(), strategy="torch-export").report.verdict.exit_code == 1


def test_the_file_keeps_the_range(detector: Path) -> None:
    assert dim_ranges.ranges(load(detector)) == {"height": Range(64, 256), "width": Range(64)}


@pytest.mark.parametrize("strategy", ["torch-export", "torch-plain", "torch-strict", "torchscript"])
def test_every_strategy_gets_the_range(strategy: str) -> None:
    found = exported(strategy=strategy)
    assert found.report.verdict.exit_code == 0, found.report.headline
    assert min((part(found).sizes or {})["height"]) == 64


def test_a_dim_of_torch_has_the_same_effect(tmp_path: Path) -> None:
    height, width = torch.export.Dim("height", min=64, max=1024), torch.export.Dim("width", min=64)
    found = exported(tmp_path / "d.onnx", sizes=(), dynamic={"x": {2: height, 3: width}})
    assert found.report.verdict.exit_code == 0, found.report.headline
    assert part(found).ranges == {"height": "64..1024", "width": "64.."}
    assert dim_ranges.ranges(load(found.path))["height"] == Range(64, 1024)
    assert any("torch captured height for sizes from 64 to 1024" in note for note in found.report.parts[0].notes)


def test_a_range_narrows_that_of_a_dim() -> None:
    height = torch.export.Dim("height", min=32, max=128)
    dynamic = {"x": {2: height, 3: "width"}}
    assert part(exported(dynamic=dynamic)).ranges["height"] == "64..128"
    with pytest.raises(OnnxsmithError) as caught:
        exported(dynamic=dynamic, sizes=["height=200.."])
    assert (caught.value.problem.id, caught.value.problem.fix) == ("input/size-range", "--dim height=32..128")


@pytest.mark.parametrize(("sizes", "problem"), [(["height=128..256"], "size-range"), (["hight=64.."], "unknown-dim")])
def test_a_range_that_does_not_fit_is_refused(sizes: list[str], problem: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        exported(sizes=sizes)
    assert caught.value.problem.id == f"input/{problem}"
    fix = caught.value.problem.fix
    assert "--dim height=96..256" in fix or "--dim height=64.." in fix


VERBS = {
    "simplify": lambda file, to, **more: onnxsmith.simplify(file, to, verify=Verify(**more)),
    "compare": lambda file, to, **more: onnxsmith.compare(file, file, thorough=True, **more),
    "edit": lambda file, to, **more: _renamed(file, to, **more),
    "check": lambda file, to, **more: onnxsmith.check(file, ["onnxruntime"], verify=Verify(**more)),
    "split": lambda file, to, **more: onnxsmith.split(file, to.with_suffix(""), into=2, verify=Verify(**more)),
    "run": lambda file, to, **more: onnxsmith.run(file, random=True, **more),
    "dump": lambda file, to, **more: onnxsmith.dump(file, to.with_suffix(".npz"), **more),
    "quantize": lambda file, to, **more: onnxsmith.quantize(file, to, measure_time=False, budget=1.0, **more),
}


def _renamed(file: Path, to: Path, **more: Any) -> Any:
    with onnxsmith.edit(file, to, verify=Verify(**more)) as edit:
        edit.rename(tensor="x", to="picture")
    return edit.result


@pytest.mark.parametrize("verb", ["simplify", "compare", "edit", "split"])
def test_later_verbs_stay_in_the_range(verb: str, detector: Path, tmp_path: Path) -> None:
    found = part(VERBS[verb](detector, tmp_path / "m.onnx"))
    assert found.equal
    assert found.ranges == {"height": "64..256", "width": "64.."}
    assert min((found.sizes or {})["height"]) == 64
    assert max((found.sizes or {})["height"]) == 256


def test_a_run_on_random_inputs_stays_in_the_range(detector: Path) -> None:
    assert onnxsmith.run(detector, random=True).report.parts[0].inputs == {"x": "float32[1, 3, 64, 64]"}
    found = onnxsmith.run(detector, random=True, sizes={"height": (9, 10), "width": 8}).report.parts[0].inputs
    assert found == {"x": "float32[1, 3, 9, 8]"}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("sizes", [{"hight": 70}, {"height": (70, 65)}])
def test_every_verb_refuses_what_is_no_range(verb: str, sizes: Any, detector: Path, tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        VERBS[verb](detector, tmp_path / "m.onnx", sizes=sizes)
    assert caught.value.problem.id in ("input/unknown-dim", "quantize/unknown-dim", "input/size-range")


def test_a_range_given_to_a_later_verb_is_kept(tmp_path: Path) -> None:
    torch.manual_seed(0)
    plain = onnxsmith.export(
        torch.nn.Linear(3, 2), (torch.rand(4, 3),), output=tmp_path / "p.onnx", dynamic="input:0=n"
    )
    simple = onnxsmith.simplify(plain.path, tmp_path / "s.onnx", verify=Verify(sizes={"n": (2, 9)}))
    assert part(simple).ranges == {"n": "2..9"}
    assert dim_ranges.ranges(load(simple.path)) == {"n": Range(2, 9)}
    assert dim_ranges.ranges(load(plain.path)) == {}
    with onnxsmith.edit(simple.path, tmp_path / "e.onnx") as edit:
        edit.rename(dim="n", to="rows")
    assert dim_ranges.ranges(load(tmp_path / "e.onnx")) == {"rows": Range(2, 9)}


@pytest.mark.parametrize(
    ("size", "found"),
    [
        ({"shortest_edge": 800, "longest_edge": 1333}, Range(333, 1333)),
        ({"longest_edge": 1024}, Range(256, 1024)),
        ({"height": 224, "width": 224}, None),
        ({"shortest_edge": 224}, None),
    ],
)
def test_the_sizes_of_a_processor(size: dict[str, int], found: Range | None, tmp_path: Path) -> None:
    import json

    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"size": size}))
    assert of_processor(tmp_path, torch.zeros(1, 3, 600, 900)).get("height") == found
