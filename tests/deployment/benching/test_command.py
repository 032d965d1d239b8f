"""`onnxsmith bench` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from onnxsmith.base.report.parts.measurements import Latencies, Measurement, Throughput
from onnxsmith.cli.commands.run import Bench
from tests.deployment.benching import models
from tests.deployment.benching.models import saved


def test_options_reach_the_measurement(tmp_path: Path) -> None:
    path = saved(tmp_path, models.CHAIN)
    made = Bench(
        (f"{path}@onnxruntime:basic:threads=1",),
        dim=("n=3",),
        batch="n=3,5",
        seconds=0.01,
        save=str(tmp_path / "b.json"),
        seed=4,
    )
    report = made.run()
    assert [one.subject for one in report.part(Latencies).subjects] == ["m.onnx on onnxruntime:basic:threads=1"]
    assert report.part(Measurement).sizes == {"n": 3}
    assert report.part(Measurement).origin == "generated, seed 4"
    assert [one.batch for one in report.part(Throughput).points] == [3, 5]
    assert json.loads((tmp_path / "b.json").read_text(encoding="utf-8"))["sizes"] == {"n": 3}


def test_what_a_baseline_allows_is_a_share(tmp_path: Path) -> None:
    path, file = saved(tmp_path, models.CHAIN), str(tmp_path / "b.json")
    Bench((path,), dim=("n=3",), seconds=0.01, save=file).run()
    report = Bench((path,), dim=("n=3",), seconds=0.01, against=file, allow="20%").run()
    assert "a time may grow by at most 20%" in [
        getattr(block, "text", "") for part in report.parts for block in part.blocks()
    ]
