"""Fixes of problems of fleets."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from onnxsmith.base.system import machine
from onnxsmith.fleet import step_process
from tests.fixes.harness import Case, Content, helps, parameters
from tests.fleets import Steps

NEG = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
ABS = NEG.replace("Neg", "Abs")
PLAN = 'models = ["m.onnx"]\nsteps = ["simplify", "check"]\n'
FILES: dict[str, Content] = {"m.onnx": NEG, "plan.toml": PLAN}
RUN = "onnxsmith fleet run plan.toml"
SHOW = "onnxsmith fleet show plan.toml"


def after(text: str, new: str) -> dict[str, Content]:
    return {"plan.toml": PLAN.replace(text, new)}


def first_run(name: str = "r") -> Content:
    """Runs the plan before its model becomes another."""

    def write(path: Path) -> None:
        from onnxsmith.fleet import verbs
        from onnxsmith.graph.files.save import save
        from onnxsmith.graph.files.text import from_text

        now = path.with_name("m.onnx").read_bytes()
        save(from_text(NEG), path.with_name("m.onnx"))
        verbs.run(path.with_name("plan.toml"), verbs.Settings(name=name))
        path.with_name("m.onnx").write_bytes(now)

    return write


def copied_store(path: Path) -> None:
    """Copies the store of the first run."""
    shutil.copy(path.with_name("fleet.sqlite"), path)


def of_another_program(path: Path) -> None:
    """Writes a database that looks like a store, and is none."""
    with sqlite3.connect(path) as connection:
        connection.executescript("CREATE TABLE rows (id INT); PRAGMA user_version = 1")
    connection.close()


CASES = [
    Case("fleet/plan", RUN, {**FILES, **after("steps", "stepps")}, changes=after("", ""), says=["steps"]),
    Case(
        "fleet/plan",
        f"{RUN} --shard 5/4",
        FILES,
        by_hand=f"{RUN} --shard 1/4",
        says=["--shard 1/4"],
        name="shard",
    ),
    Case(
        "fleet/plan",
        RUN,
        {"m.onnx": NEG, "plan.toml": f'{PLAN}[options]\ncheck = "--targit onnxruntime"'},
        changes={"plan.toml": f'{PLAN}[options]\ncheck = "--target onnxruntime"'},
        says=["write '--target' in place of '--targit'"],
        name="option",
    ),
    Case("fleet/plan-file", "onnxsmith fleet run plan.tml", FILES, by_hand=RUN, says=["give the path of the plan"]),
    Case(
        "fleet/no-models", RUN, {**FILES, **after("m.onnx", "n.onnx")}, changes=after("", ""), says=["correct the path"]
    ),
    Case(
        "fleet/model-unreadable",
        RUN,
        {
            **FILES,
            **after('["m.onnx"]', '[{ source = "m.onnx", depends = ["w.bin"] }]'),
        },
        changes={"w.bin": b"0"},
        says=["bring the file back"],
    ),
    Case("fleet/no-run", SHOW, FILES, by_hand=RUN, says=["`onnxsmith fleet run plan.toml` makes a store"]),
    Case(
        "fleet/no-run",
        f"{RUN} --since fryday",
        {**FILES, "now": first_run("friday")},
        by_hand=f"{RUN} --since friday",
        says=["write friday in place of fryday"],
        name="misspelled",
    ),
    Case(
        "fleet/run-taken",
        f"{RUN} --name r",
        {**FILES, "m.onnx": ABS, "now": first_run()},
        by_hand=RUN,
        says=["or leave it out"],
    ),
    Case("fleet/engine", f"{RUN} --engine dusk", FILES, by_hand=f"{RUN} --engine local", says=["local"]),
    Case(
        "fleet/memory",
        RUN,
        {"m.onnx": NEG, "plan.toml": f'{PLAN}memory_limit = "900TB"'},
        changes=after("", ""),
        says=["lower memory_limit"],
    ),
    Case(
        "fleet/no-cell",
        "onnxsmith fleet why plan.toml n.onnx",
        FILES,
        by_hand="onnxsmith fleet why plan.toml m.onnx",
        says=["m.onnx"],
    ),
    Case(
        "fleet/environment",
        RUN,
        {"m.onnx": NEG, "plan.toml": f'{PLAN}[environments.mine]\npython = "gone/bin/python"'},
        changes=after("", ""),
        says=["give the path of a Python"],
    ),
    Case(
        "fleet/store",
        RUN,
        {**FILES, "fleet.sqlite": b"SQLite format 3\0" + b"no database" * 100},
        nth=1,
    ),
    Case(
        "fleet/store",
        SHOW,
        {**FILES, "fleet.sqlite": of_another_program},
        by_hand=f"{RUN} --store other.sqlite",
        says=["give another path: --store other.sqlite"],
        name="of another program",
    ),
    Case(
        "fleet/store",
        "onnxsmith fleet merge rows.sqlite broken.sqlite -o all.sqlite",
        {**FILES, "now": first_run(), "rows.sqlite": copied_store, "broken.sqlite": b"no database" * 100},
        by_hand="onnxsmith fleet merge rows.sqlite -o all.sqlite",
        says=["leave broken.sqlite out"],
        name="merged",
    ),
    Case(
        "fleet/store-refused",
        "onnxsmith fleet merge rows.sqlite -o m.onnx/all.sqlite",
        {**FILES, "now": first_run(), "rows.sqlite": copied_store},
        by_hand="onnxsmith fleet merge rows.sqlite -o other.sqlite",
        says=["-o other.sqlite"],
        name="merged",
    ),
    Case(
        "fleet/store-refused",
        f"{RUN} --store m.onnx/s.sqlite",
        FILES,
        by_hand=f"{RUN} --store other.sqlite",
        says=["--store other.sqlite"],
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_a_fix_helps(
    one: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The processes of steps are played: their results are not asked for here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(step_process, "run", Steps().run)
    monkeypatch.setattr(type(machine.HERE), "memory", lambda self: 2**33)
    helps(one, tmp_path)
