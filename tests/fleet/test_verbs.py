"""run, list, show, merge, why, cell: what a user sees. The processes of steps are played."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from onnxsmith.base.report.base import Report, Table
from onnxsmith.base.report.parts.fleet import CellSteps, FleetMatrix
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.system import machine
from onnxsmith.cli import application
from onnxsmith.cli.render import terminal
from onnxsmith.cli.render.forms.sarif import Sarif
from onnxsmith.fleet import cell_run, driver, environments, merging, one_cell, run_notes, step_process, tables, verbs
from onnxsmith.fleet.row import Outcome, StepResult
from onnxsmith.fleet.stores.base import closing, opened
from onnxsmith.fleet.verbs import Settings
from tests import gallery
from tests.conftest import Refused
from tests.fleet import made_up
from tests.fleets import Steps, cells_of, keys, models, plan

PLAN = """models = ["*.onnx"]
steps = ["simplify", "check"]
[settings.one]
[settings.two]
check = "--target openvino"
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan of six cells, in the present folder."""
    models(tmp_path, "a.onnx", "b.onnx", "c.onnx")
    monkeypatch.chdir(tmp_path)
    return plan(tmp_path, PLAN)


def run(path: Path, **settings: Any) -> Report:
    return verbs.run(path, Settings(**settings))


def outcomes(report: Report) -> dict[tuple[str, str], str]:
    return {(cell.model, cell.setting): cell.outcome for cell in report.part(FleetMatrix).cells}


def counts(report: Report) -> tuple[int, int]:
    """How many cells were computed, and how many were in the store."""
    return report.part(FleetMatrix).computed, report.part(FleetMatrix).reused


def called(command: str) -> tuple[str, int]:
    """What a command prints, and its exit status."""
    return gallery.called(application.main, shlex.split(command.removeprefix("onnxsmith ")))


def reported(command: str) -> dict[str, Any]:
    text, _ = called(f"{command} --json")
    data: dict[str, Any] = json.JSONDecoder().raw_decode(text[text.index('{\n  "schema"') :])[0]
    return data


# run


def test_all_cells_are_done(path: Path, steps: Steps) -> None:
    report = run(path, name="first")
    assert (report.verdict, report.problems, counts(report)) == (Verdict.DONE, (), (6, 0))
    assert report.headline == "first: 6 cells: 6 done"
    assert set(outcomes(report).values()) == {"done"}
    assert list(outcomes(report)) == [(f"{name}.onnx", setting) for name in "abc" for setting in ("one", "two")]
    assert (path.parent / "fleet.sqlite").is_file()


def test_a_second_run_computes_nothing(path: Path, steps: Steps) -> None:
    first, before = run(path, name="first"), list(steps.called)
    second = run(path, name="second")
    assert steps.called == before
    assert counts(second) == (0, 6)
    assert outcomes(first) == outcomes(second)
    assert second.verdict is Verdict.DONE


def test_only_what_changed_is_computed(path: Path, steps: Steps) -> None:
    run(path, name="first")
    steps.called.clear()
    models(
        path.parent,
        "b.onnx",
        text='<ir_version: 9, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Abs(x) }',
    )
    assert counts(run(path, name="second")) == (2, 4)
    assert {Path(words[1]).name for words in steps.called if words[0] == "simplify"} == {"b.onnx"}


def test_cells_that_are_not_done(path: Path, steps: Steps) -> None:
    steps.endings = {"simplify a.onnx": Outcome.CRASHED, "simplify b.onnx": Outcome.TIMEOUT}
    report = run(path, name="first")
    assert report.verdict is Verdict.DIFFERENT
    assert report.headline == "first: 6 cells: 2 done, 2 timeout, 2 crashed"
    assert outcomes(report)["a.onnx", "one"] == "crashed"
    assert counts(run(path, name="second")) == (0, 6), "a crash is a result"


@pytest.mark.parametrize(
    ("again", "computed"), [((), 0), (("crashed",), 2), (("crashed", "done"), 4), (("all",), 6), (("failed",), 0)]
)
def test_again(path: Path, steps: Steps, again: tuple[str, ...], computed: int) -> None:
    steps.endings = {"simplify a.onnx": Outcome.CRASHED, "simplify b.onnx": Outcome.TIMEOUT}
    run(path, name="first")
    steps.endings = {}
    report = run(path, name="second", again=again)
    assert counts(report) == (computed, 6 - computed)
    assert (outcomes(report)["a.onnx", "one"] == "done") == bool({"crashed", "all"} & set(again))


def test_again_with_an_outcome_that_is_none(path: Path, steps: Steps, refused: Refused) -> None:
    with refused("fleet/plan") as refusal:
        run(path, again=("crash",))
    assert refusal.problem.fix.startswith("write crashed in place of crash")
    with closing():
        assert opened(str(path.parent / "fleet.sqlite")).run_names() == []


def test_a_lost_cell_is_computed_by_the_next_run(path: Path, steps: Steps) -> None:
    run(path, name="first")
    with closing():
        opened(str(path.parent / "fleet.sqlite")).put(cell_run.lost(cells_of(path)[0], "gone"))
    assert counts(run(path, name="second")) == (1, 5)


def test_equal_cells_are_computed_once(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "a.onnx")
    path = plan(tmp_path, 'models = ["*.onnx"]\nsteps = ["check"]\n[settings.one]\n[settings.same]\n')
    report = run(path)
    assert counts(report) == (1, 0)
    assert list(outcomes(report).values()) == ["done", "done"]


def test_names_of_runs(path: Path, steps: Steps) -> None:
    """Without a name, each run gets another, even within a second."""
    for _ in range(3):
        run(path)
    with closing():
        names = opened(str(path.parent / "fleet.sqlite")).run_names()
    assert len(set(names)) == 3
    assert all(name.startswith("p 20") for name in names)


def test_a_name_that_is_taken(path: Path, steps: Steps, refused: Refused) -> None:
    run(path, name="first")
    assert counts(run(path, name="first")) == (0, 6), "the same work goes on"
    models(path.parent, "d.onnx")
    with refused("fleet/run-taken") as refusal:
        run(path, name="first")
    assert "another --name" in refusal.problem.fix
    plan(path.parent, 'models = ["a.onnx"]\nsteps = ["check"]', "other.toml")
    with refused("fleet/run-taken") as refusal:
        run(path.with_name("other.toml"), name="first")
    assert "the plan 'p'" in refusal.problem.why


def test_resume(path: Path, steps: Steps, refused: Refused) -> None:
    with refused("fleet/no-run"):
        run(path, resume=True)
    run(path, name="first")
    assert run(path, resume=True).part(FleetMatrix).run == "first"
    models(path.parent, "d.onnx")
    with refused("fleet/run-taken") as refusal:
        run(path, resume=True)
    assert "leave --resume out" in refusal.problem.fix


def test_an_interrupted_run_goes_on(path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the store is kept, and the problem names the command that goes on."""
    real, seen = driver._Flow._next, [0]

    def interrupted(self: Any) -> Any:
        seen[0] += 1
        if seen[0] == 3:
            raise KeyboardInterrupt
        return real(self)

    monkeypatch.setattr(driver._Flow, "_next", interrupted)
    store = str(path.parent / "my store.sqlite")
    report = run(path, name="first run", workers=1, store=store)
    monkeypatch.undo()
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr("onnxsmith.fleet.step_process.run", steps.run)
    (problem,) = report.problems
    assert (report.verdict, problem.id) == (Verdict.FAILED, "run/interrupted")
    kept = 6 - list(outcomes(report).values()).count("missing")
    assert f"{kept} of 6 cells are in the store" in problem.why
    assert 2 <= kept < 6
    command = problem.fix.partition("`")[2].partition("`")[0]
    text, status = called(command)
    assert status == 0
    assert "first run: 6 cells: 6 done" in text
    assert "6 done" in called(f"fleet show p.toml --store '{store}'")[0]
    assert not (path.parent / "fleet.sqlite").exists()


def unwritable(folder: Path) -> Any:
    """Plays a system that lets nobody write to a folder and the files in it."""
    real = os.access
    return lambda path, mode: real(path, mode) and not (mode & os.W_OK and folder in (Path(path), *Path(path).parents))


@pytest.mark.parametrize("name", ["fleet.sqlite", "rows/"])
def test_a_store_that_can_only_be_read(
    path: Path, steps: Steps, refused: Refused, monkeypatch: pytest.MonkeyPatch, name: str, tmp_path_factory: Any
) -> None:
    """It is enough to show a run, and for a run that computes nothing."""
    run(path, name="first", store=name)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr(os, "access", unwritable(path.parent))
    monkeypatch.setattr(Path, "write_bytes", denied)
    assert verbs.show(path, name, since="first").verdict is Verdict.DONE
    second = run(path, name="second", store=name)
    assert counts(second) == (0, 6)
    assert any("not stored, because the store is read-only" in note for note in second.notes)
    monkeypatch.chdir(elsewhere)
    assert merging.merge([f"{path.parent}/{name}"], "all.sqlite").verdict is Verdict.DONE
    monkeypatch.chdir(path.parent)
    with refused("fleet/store-refused") as refusal:
        run(path, name="third", store=name, again=("all",))
    assert str(path.parent) not in refusal.problem.fix
    assert "other.sqlite" in refusal.problem.fix


def denied(*_: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize("content", [b"garbage", b"", None])
def test_a_damaged_row_is_computed_again(path: Path, steps: Steps, content: bytes | None) -> None:
    run(path, name="first", store="rows/")
    file = min((path.parent / "rows" / "rows").rglob("*.json"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-40] if content is None else content)
    shown = verbs.show(path, "rows/")
    assert sorted(outcomes(shown).values()) == ["done"] * 5 + ["missing"]
    second = run(path, name="second", store="rows/")
    for report in (shown, second):
        (note,) = report.notes
        assert file.name in note
        assert "is damaged and was ignored" in note
    assert counts(second) == (1, 5)
    assert verbs.show(path, "rows/").notes == ()


def test_a_merge_that_fails_leaves_no_file(path: Path, steps: Steps, refused: Refused) -> None:
    run(path, name="first")
    whole = Path("fleet.sqlite").read_bytes()
    Path("half.sqlite").write_bytes(whole[: len(whole) // 2])
    Path("other").mkdir()
    for sources, id_ in (["fleet.sqlite", "half.sqlite"], "fleet/store"), (["other"], "fleet/no-run"):
        with refused(id_):
            merging.merge(sources, "all.sqlite")
        assert not [file for file in path.parent.iterdir() if "all" in file.name]


def test_a_full_store_stops_the_run(path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.fleet.store_problems import refused as refused_store
    from onnxsmith.fleet.stores.sqlite import SqliteStore

    real, lock, taken = SqliteStore.put, threading.Lock(), [0]

    def put(self: SqliteStore, row: Any) -> None:
        with lock:
            taken[0] += 1
            if taken[0] > 2:
                raise refused_store(self.address, OSError(28, "No space left on device"))
        real(self, row)

    monkeypatch.setattr(SqliteStore, "put", put)
    report = run(path, workers=1)
    assert (report.verdict, report.problems[0].id) == (Verdict.FAILED, "fleet/store-full")
    assert list(outcomes(report).values()).count("done") == 2
    assert "--resume" in report.problems[0].fix


def test_since(path: Path, steps: Steps, refused: Refused) -> None:
    steps.endings = {"simplify c.onnx": Outcome.FAILED}
    run(path, name="old")
    models(
        path.parent,
        "b.onnx",
        text='<ir_version: 9, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Abs(x) }',
    )
    report = run(path, name="same", since="old")
    assert report.verdict is Verdict.DONE, "a cell that failed before does not fail a comparison"
    assert report.headline.endswith("worse than in old: none")
    steps.endings = {"simplify b.onnx": Outcome.CRASHED}
    report = run(path, name="new", since="same", again=("all",))
    assert counts(report) == (6, 0), "the rows of the earlier run are replaced, and compared with all the same"
    assert [(cell.model, cell.setting, cell.before) for cell in report.part(FleetMatrix).worse()] == [
        ("b.onnx", "one", "done"),
        ("b.onnx", "two", "done"),
    ]
    assert report.verdict is Verdict.DIFFERENT
    assert report.headline.partition("; ")[2] == (
        "2 worse than in same: b.onnx (one), b.onnx (two); 2 repaired: c.onnx (one), c.onnx (two)"
    )
    with refused("fleet/no-run") as refusal:
        run(path, since="odl")
    assert refusal.problem.fix.startswith("write old in place of odl")


def test_workers_and_memory(path: Path, steps: Steps, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(machine.HERE), "memory", lambda self: 10 * 2**30)
    monkeypatch.setattr(type(machine.HERE), "cores", lambda self: 8)
    read = verbs.plan_reader.read
    assert verbs._workers(read(path), 0, "") == 0
    limited = read(plan(path.parent, f'memory_limit = "3GB"\nworkers = 2\n{PLAN}'))
    assert [verbs._workers(limited, asked, "") for asked in (0, 1, 9)] == [2, 1, 3]
    assert verbs._workers(limited, 9, "tcp://far:1") == 9
    assert [verbs._threads(workers) for workers in (0, 1, 3, 99)] == [1, 8, 2, 1]
    with refused("fleet/memory"):
        run(plan(path.parent, f'memory_limit = "11GB"\n{PLAN}'))
    with refused("fleet/plan"):
        run(plan(path.parent, PLAN), workers=-1)


def test_an_engine_that_is_none(path: Path, refused: Refused) -> None:
    with refused("fleet/engine") as refusal:
        run(path, engine="dusk")
    assert refusal.problem.fix.startswith("write dask in place of dusk")


@pytest.mark.parametrize(
    ("named", "given", "address"),
    [
        ("", "", "{}/fleet.sqlite"),
        ("rows.sqlite", "", "{}/rows.sqlite"),
        ("rows/", "", "{}/rows/"),
        ("memory://rows", "", "memory://rows"),
        ("rows.sqlite", "x.sqlite", "x.sqlite"),
        ("memory://rows", "x/", "x/"),
    ],
)
def test_the_address_of_the_store(path: Path, named: str, given: str, address: str) -> None:
    read = verbs.plan_reader.read(plan(path.parent, f"store = '{named}'\n{PLAN}"))
    assert verbs.address_of(read, given) == address.format(path.parent)


# Kept files


def test_a_kept_file_that_is_gone_is_made_again(path: Path, steps: Steps) -> None:
    plan(path.parent, f'keep = "out"\n{PLAN}')
    assert counts(run(path)) == (6, 0)
    assert counts(run(path)) == (0, 6)
    (path.parent / "out" / "b.onnx" / "two" / "here" / "1-simplify.onnx").unlink()
    assert counts(run(path)) == (1, 5)
    assert (path.parent / "out" / "b.onnx" / "two" / "here" / "1-simplify.onnx").is_file()


# Shards


@pytest.mark.parametrize("one_store", [False, True])
def test_shards_give_the_table_of_one_run(path: Path, steps: Steps, one_store: bool) -> None:
    steps.endings = {"simplify b.onnx": Outcome.FAILED}
    whole = run(path, name="r", store="whole.sqlite")
    parts = [
        run(path, name="r", store="s/" if one_store else f"{number}.sqlite", shard=(number, 3)) for number in (1, 2, 3)
    ]
    assert [len(outcomes(part)) for part in parts] == [2, 2, 2]
    assert [part.headline.partition(":")[0] for part in parts] == ["r"] * 3
    assert {cell for part in parts for cell in outcomes(part)} == set(outcomes(whole))
    if one_store:
        joined = verbs.show("s/")
    else:
        joined = merging.merge(["1.sqlite", "2.sqlite", "3.sqlite"], "all.sqlite")
        assert joined.notes == ("copied 6 rows",)
    assert list(outcomes(joined).items()) == list(outcomes(whole).items())
    assert joined.verdict is whole.verdict


def test_a_shard_is_judged_by_its_own_cells(path: Path, steps: Steps) -> None:
    """That the other machines are not done yet is no failure of this one."""
    report = run(path, name="r", shard=(1, 3))
    assert (report.verdict, report.notes) == (Verdict.DONE, ())
    assert verbs.show(path).verdict is Verdict.DIFFERENT
    assert sorted(outcomes(verbs.show(path)).values()) == ["done"] * 2 + ["missing"] * 4


def test_a_shard_without_cells_is_done_and_can_be_merged(path: Path, steps: Steps) -> None:
    for number in range(1, 9):
        store = f"{number}.sqlite"
        text, status = called(f"fleet run p.toml --name r --shard {number}/8 --store {store} --page {number}.html")
        assert status == 0
        is_empty = number > 6
        assert (f"part {number} of 8 has no cells, because the plan has only 6 cells" in text) is is_empty
    joined = merging.merge([f"{number}.sqlite" for number in range(8, 0, -1)], "all.sqlite")
    assert (joined.headline, joined.verdict) == ("r: 6 cells: 6 done", Verdict.DONE)


def test_the_cells_of_other_shards_are_not_gone(path: Path, steps: Steps) -> None:
    run(path, name="first", store="s/")
    Path("a.onnx").unlink()
    parts = [run(path, name="second", since="first", store="s/", shard=(number, 2)) for number in (1, 2)]
    assert [part.part(FleetMatrix).gone for part in parts] == [(("a.onnx", "one"), ("a.onnx", "two"))] * 2


@pytest.mark.parametrize(
    ("shard", "what", "why"),
    [
        ("4/3", "there is no part 4 of 3", "valid parts are 1/3 to 3/3"),
        ("0/3", "there is no part 0 of 3", "valid parts are 1/3 to 3/3"),
        ("1/0", "there is no part 1 of 0", "there has to be at least one part: 1/1"),
        ("3", "'3' is not a part", "two numbers: which part, and how many parts there are"),
        ("-1/3", "'-1/3' is not a part", "two numbers"),
    ],
)
def test_a_part_that_is_none(path: Path, shard: str, what: str, why: str) -> None:
    text, status = called(f"fleet run p.toml --shard={shard}")
    assert (status, what in text, why in text) == (2, True, True)


# merge


def test_merge_prefers_a_row_that_says_something(path: Path, steps: Steps) -> None:
    for name in ("good.sqlite", "lost.sqlite"):
        run(path, name="r", store=name)
    (cell, *_) = cells_of(path)
    with closing():
        opened("lost.sqlite").put(cell_run.lost(cell, "gone"))
    for order in (["good.sqlite", "lost.sqlite"], ["lost.sqlite", "good.sqlite"]):
        target = f"{order[0]}.all"
        assert set(outcomes(merging.merge(order, target)).values()) == {"done"}


def test_merge_of_runs_that_disagree(path: Path, steps: Steps, refused: Refused) -> None:
    run(path, name="r", store="1.sqlite")
    models(
        path.parent,
        "b.onnx",
        text='<ir_version: 9, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Abs(x) }',
    )
    run(path, name="r", store="2.sqlite")
    with refused("fleet/run-taken") as refusal:
        merging.merge(["1.sqlite", "2.sqlite"], "all.sqlite")
    assert "b.onnx is a different model in each" in refusal.problem.what


def test_merge_of_nothing(path: Path, steps: Steps, refused: Refused) -> None:
    with refused("fleet/no-run"):
        merging.merge(["gone.sqlite"], "all.sqlite")
    assert not Path("all.sqlite").exists()
    with closing():
        opened("empty.sqlite")
    with refused("fleet/no-run"):
        merging.merge(["empty.sqlite"], "all.sqlite")


def test_merge_into_itself(path: Path, steps: Steps) -> None:
    run(path, name="r", store="1.sqlite")
    report = merging.merge(["1.sqlite"], "1.sqlite")
    assert report.notes == ("copied 0 rows",)
    assert len(outcomes(report)) == 6


# show


def test_show(path: Path, steps: Steps, refused: Refused) -> None:
    with refused("fleet/no-run"):
        verbs.show(path)
    with refused("fleet/no-run"):
        verbs.show(path, store="typo.sqlite")
    assert [file for file in path.parent.iterdir() if "sqlite" in file.name] == [], "what only reads makes no store"
    first = run(path, name="first")
    models(path.parent, "d.onnx")
    run(path, name="second")
    assert outcomes(verbs.show(path, name="first")) == outcomes(first)
    for report in (verbs.show(path), verbs.show("fleet.sqlite"), verbs.show(path, store="fleet.sqlite")):
        assert len(outcomes(report)) == 8
    report = verbs.show(path, name="second", since="first")
    assert report.verdict is Verdict.DONE
    assert [cell.before for cell in report.part(FleetMatrix).cells].count("") == 2, "new cells have no earlier outcome"
    with refused("fleet/no-run"):
        verbs.show(path, name="third")
    with refused("fleet/no-run"):
        verbs.show("gone.sqlite")


# cell, list, why


def test_the_listed_commands_compute_the_plan(path: Path, steps: Steps) -> None:
    data = reported("fleet list p.toml --store s/")
    commands = [cell["command"] for part in data["parts"] if part["kind"] == "cell_commands" for cell in part["cells"]]
    assert len(commands) == 6
    for command in commands:
        assert called(command)[1] == 0
    assert len(steps.called) == 12
    assert counts(run(path, store="s/")) == (0, 6)
    text, status = called("fleet list p.toml --store s/")
    assert status == 0
    assert [line for line in text.splitlines() if line.startswith("onnxsmith")] == commands


def test_one_cell(path: Path, steps: Steps, refused: Refused) -> None:
    key = keys(path)["b.onnx", "two", "here"]
    steps.endings = {"simplify b.onnx": Outcome.DIFFERENT}
    report = one_cell.compute(path, key)
    assert (report.verdict, report.headline) == (
        Verdict.DIFFERENT,
        "b.onnx two: different: simplify of b.onnx: different",
    )
    one_cell.compute(path, key)
    assert steps.verbs == ["simplify"]
    with refused("fleet/no-cell") as refusal:
        one_cell.compute(path, "0" * 32)
    assert "onnxsmith fleet list" in refusal.problem.fix


def test_why(path: Path, steps: Steps) -> None:
    run(path)
    steps.called.clear()
    steps.endings = {"check": Outcome.CANNOT_TELL}
    report = one_cell.why(path, "b.onnx", "two")
    assert steps.verbs == ["simplify", "check"]
    assert report.verdict is Verdict.DIFFERENT
    assert [(step.verb, step.outcome, step.command) for step in report.part(CellSteps).steps] == [
        ("simplify", "done", "onnxsmith simplify b.onnx -o 1-simplify.onnx"),
        ("check", "cannot-tell", "onnxsmith check 1-simplify.onnx --target openvino"),
    ]
    assert "the commands run without the time limit and the memory limit of the plan" in report.notes
    assert outcomes(verbs.show(path))["b.onnx", "two"] == "done", "the store keeps its row"


def test_which_cell(path: Path, steps: Steps, refused: Refused) -> None:
    for model, setting, what in (
        ("d", "one", "no model 'd'"),
        ("b", "", "has 2 such cells"),
        ("b.onnx", "three", "has no such cell"),
    ):
        with refused("fleet/no-cell") as refusal:
            one_cell.why(path, model, setting)
        assert what in refusal.problem.what
    assert "--setting two --environment here" in refusal.problem.fix
    assert one_cell.why(path, "b", "one").headline.startswith("b.onnx one: done")
    assert steps.verbs == ["simplify", "check"]
    models(path.parent, "deep/b.onnx")
    plan(path.parent, PLAN.replace('"*.onnx"', '"**/*.onnx"'))
    with refused("fleet/no-cell") as refusal:
        one_cell.why(path, "other/b", "one")
    assert "may mean several models" in refusal.problem.what


def test_short_names(path: Path, steps: Steps, refused: Refused) -> None:
    folder = path.parent
    (folder / "nets.py").write_text("".join(f"def {name}(): ...\n" for name in ("segv", "loop")))
    files = [f"m{number}.onnx" for number in range(12)]
    models(folder, *files)
    plan(folder, 'models = ["nets.py:segv", "nets.py:loop", "m*.onnx"]\nsteps = ["export", "check"]')
    assert one_cell.why(path, "segv").headline.startswith("nets.py:segv")
    for wrong in ("nets", "nets.py:sgv"):
        with refused("fleet/no-cell") as refusal:
            one_cell.why(path, wrong)
    fix = refusal.problem.fix
    assert fix.startswith("write nets.py:segv in place of nets.py:sgv (there are: nets.py:segv, nets.py:loop, m0.onnx")
    assert fix.endswith(" and 6 more)")


# The command line


def test_the_command_run(path: Path, steps: Steps) -> None:
    steps.endings = {"simplify a.onnx": Outcome.FAILED}
    text, status = called("fleet run p.toml --name first --workers 2")
    assert (status, "first: 6 cells: 4 done, 2 failed" in text) == (1, True)
    steps.endings = {}
    text, status = called("fleet run p.toml --name second --since first --again crashed --again failed")
    assert (status, "second: 6 cells: 6 done; worse than in first: none" in text) == (0, True)
    assert called("fleet run gone.toml")[1] == called("fleet run p.toml --shard 3/2")[1] == 2


@pytest.mark.parametrize(
    ("options", "line", "says"),
    [
        ("check = '--targit openvino'", 4, "write '--target' in place of '--targit'"),
        ("simplify = ['--seed', 'x']", 4, "unable to parse string as an integer"),
        ("simplify = 'more'", 4, "unexpected extra argument"),
        ("[settings.new]\nsteps = ['opset']", 5, "Missing argument 'OPSET'"),
    ],
)
@pytest.mark.parametrize("command", ["run p.toml", "list p.toml", "why p.toml a", "bisect p.toml a --versions 1,2"])
def test_a_wrong_option_is_refused_before_anything_runs(
    path: Path, steps: Steps, command: str, options: str, line: int, says: str
) -> None:
    plan(path.parent, f'models = ["*.onnx"]\nsteps = ["simplify", "check"]\n[options]\n{options}\n')
    text, status = called(f"fleet {command}")
    assert (status, steps.called) == (2, [])
    assert "fleet/plan" in text
    assert f"p.toml, line {line}" in text
    assert says in text


def test_the_command_line_takes_the_plans_of_the_document(tmp_path: Path) -> None:
    from onnxsmith.cli.commands.fleet._options import refuse_wrong_options

    text = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text(encoding="utf-8")
    plans = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(plans) == 2
    for content in plans:
        refuse_wrong_options(str(plan(tmp_path, content)))


def test_each_verb_has_a_command_line() -> None:
    from onnxsmith.cli.commands.fleet._options import _mistake
    from onnxsmith.fleet.steps import VERBS, Step, words_of

    for verb in VERBS:
        words = words_of(Step(verb, ("--verbose", "--report", "r.md")), "FIRST", "MODEL", "OUT")
        mistake = _mistake(verb, words)
        assert mistake is None or mistake.is_missing, (verb, mistake)
        wrong = _mistake(verb, [*words, "--nonsense"])
        assert wrong is not None
        assert wrong.what == f"{verb} has no option --nonsense"


def test_the_commands_merge_and_show(path: Path, steps: Steps) -> None:
    for part in (1, 2):
        run(path, name="part", shard=(part, 2), store=f"{part}/")
    text, status = called("fleet merge 1/ 2/ -o all.sqlite --page all.html")
    assert (status, "part: 6 cells: 6 done" in text) == (0, True)
    assert Path("all.html").is_file()
    assert len(list(Path("all-cells").glob("*.html"))) == 6
    assert called("fleet merge 1/ 2/ -o all.sqlite --every-cell")[1] == 2
    text, status = called("fleet show all.sqlite --name part")
    assert (status, "part: 6 cells: 6 done" in text) == (0, True)
    assert called("fleet show gone.sqlite")[1] == 2


def test_the_commands_why_and_cell(path: Path, steps: Steps) -> None:
    steps.endings = {"simplify a.onnx": Outcome.FAILED}
    text, status = called("fleet why p.toml a --setting one")
    assert (status, "simplify of a.onnx: failed" in text) == (1, True)
    assert called(f"fleet cell p.toml {keys(path)['b.onnx', 'two', 'here']}")[1] == 0
    assert called("fleet cell p.toml x")[1] == 2


def test_the_command_run_is_silent_if_asked(tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    models(tmp_path, "a.onnx")
    plan(tmp_path, 'models = ["a.onnx"]\nsteps = ["check"]')
    assert called("fleet run p.toml --name r --quiet") == ("", 0)


def test_the_command_merge_of_nothing(tmp_path: Path) -> None:
    text, status = called(f"fleet merge '{tmp_path}/a.sqlite' '{tmp_path}/b.sqlite' -o '{tmp_path}/all.sqlite'")
    assert (status, "fleet/no-run" in text) == (2, True)


def test_the_command_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    models(tmp_path, "a.onnx")
    path = plan(tmp_path, 'models = ["a.onnx"]\nsteps = ["check"]')
    (key,) = keys(path).values()
    text, status = called("fleet list p.toml -o cells.txt")
    assert (status, "1 cell" in text) == (0, True)
    assert Path("cells.txt").read_text() == f"onnxsmith fleet cell p.toml {key}\n"


def test_bisect_needs_two_versions(path: Path) -> None:
    text, status = called("fleet bisect p.toml b.onnx --versions 1.31.0")
    assert (status, "fleet/versions" in text) == (2, True)
    assert called("fleet bisect p.toml b.onnx --good 1.31.0")[1] == 2


VERSIONS = "1.27.0,1.28.0,1.29.0,1.29.1,1.30.0,1.31.0,1.32.0"


@pytest.fixture
def played_versions(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> dict[str, Outcome]:
    """Environments are played: an interpreter is called after its requirements. The outcome of `check` with a version
    is that of the last version here that is not newer."""
    outcomes: dict[str, Outcome] = {}
    monkeypatch.setattr(environments, "interpreter", lambda environment: environment.requirements[-1])
    monkeypatch.setattr(environments, "versions_of", lambda python: {})

    def ending(verb: str, words: Any, **how: Any) -> Any:
        version = how["python"].partition("==")[2]
        steps.endings = {"check": [outcome for start, outcome in outcomes.items() if start <= version][-1]}
        return steps.run(verb, words, **how)

    monkeypatch.setattr("onnxsmith.fleet.step_process.run", ending)
    return outcomes


BISECT = "fleet bisect p.toml b.onnx --setting one --package onnxruntime"


@pytest.mark.parametrize("first", ["1.28.0", "1.29.1", "1.32.0"])
@pytest.mark.parametrize(
    ("before", "after", "direction"),
    [(Outcome.DONE, Outcome.CRASHED, "worse"), (Outcome.FAILED, Outcome.DONE, "better")],
)
def test_the_command_bisect(
    path: Path,
    steps: Steps,
    played_versions: dict[str, Outcome],
    first: str,
    before: Outcome,
    after: Outcome,
    direction: str,
) -> None:
    played_versions.update({"1": before, first: after})
    text, status = called(f"{BISECT} --versions {VERSIONS}")
    assert status == 0
    now, was = (
        str(one) if one is Outcome.DONE else f"{one} (check of 1-simplify.onnx: {one})" for one in (after, before)
    )
    older = VERSIONS.split(",")[VERSIONS.split(",").index(first) - 1]
    assert f"onnxruntime {first} is the first version with a {direction} result: {now}; {older}: {was}" in text.replace(
        "\n", " "
    )
    assert 6 <= len(steps.called) <= 10, "both ends, and two or three versions between them"
    steps.called.clear()
    assert called(f"{BISECT} --versions {VERSIONS}")[1] == 0
    assert not steps.called, "the rows of the versions are in the store"


def test_bisect_with_a_third_outcome_between(path: Path, steps: Steps, played_versions: dict[str, Outcome]) -> None:
    """The neighbours differ in the direction of the ends."""
    played_versions.update({"1": Outcome.FAILED, "1.28.0": Outcome.CRASHED, "1.31.0": Outcome.DONE})
    text, status = called(f"{BISECT} --versions {VERSIONS}")
    assert (status, "onnxruntime 1.31.0 is the first version with a better result: done" in text) == (0, True)


@pytest.mark.parametrize(("good", "bad", "swapped"), [("1.27.0", "1.32.0", True), ("1.32.0", "1.27.0", False)])
def test_bisect_where_the_newer_version_is_better(
    path: Path,
    steps: Steps,
    played_versions: dict[str, Outcome],
    monkeypatch: pytest.MonkeyPatch,
    good: str,
    bad: str,
    swapped: bool,
) -> None:
    from onnxsmith.fleet import bisect

    printed = f"Available versions: 2.0.0, {VERSIONS.replace(',', ', ')}, 1.26.0\n"
    done = subprocess.CompletedProcess([], 0, printed.encode())
    monkeypatch.setattr(bisect.children.HERE, "run", lambda *_, **__: done)
    played_versions.update({"1": Outcome.FAILED, "1.29.1": Outcome.DONE})
    text, status = called(f"{BISECT} --good {good} --bad {bad}")
    assert status == 0
    assert "onnxruntime 1.29.1 is the first version with a better result: done" in text
    assert ("seem swapped: the cell ends as failed with 1.27.0 (--good)" in text) is swapped


@pytest.mark.parametrize(("gone", "good", "bad"), [("1.32.0", "1.27.0", "1.31.0"), ("1.27.0", "1.28.0", "1.32.0")])
def test_a_version_that_cannot_be_installed(
    path: Path,
    steps: Steps,
    played_versions: dict[str, Outcome],
    monkeypatch: pytest.MonkeyPatch,
    refused: Refused,
    gone: str,
    good: str,
    bad: str,
) -> None:
    """What uv says is told whole, and the fix is a command without this version."""
    from onnxsmith.fleet import bisect

    def interpreter(environment: environments.Environment) -> str:
        (requirement,) = [one for one in environment.requirements if one.startswith("onnxruntime")]
        if requirement.endswith(gone):
            raise environments._unmade(environment, "x No solution found\n  because numpy<2\n  and numpy>=2")
        return requirement

    monkeypatch.setattr(environments, "interpreter", interpreter)
    played_versions.update({"1": Outcome.DONE, "1.30.0": Outcome.FAILED})
    with refused("fleet/versions") as refusal:
        bisect.bisect(
            "p.toml", "b.onnx", "onnxruntime", good="1.27.0", bad="1.32.0", versions=VERSIONS.split(","), setting="one"
        )
    assert refusal.problem.why.splitlines()[1:] == ["  because numpy<2", "  and numpy>=2"]
    command = refusal.problem.fix.split("`")[1]
    rest = ",".join(one for one in VERSIONS.split(",") if one != gone)
    assert f"--versions {rest} --setting one --good {good} --bad {bad}" in command
    text, status = called(command.removeprefix("onnxsmith "))
    assert (status, "onnxruntime 1.30.0 is the first version with a worse result" in text) == (0, True)


def test_bisect_has_nothing_to_find(path: Path, steps: Steps, played_versions: dict[str, Outcome]) -> None:
    played_versions.update({"1": Outcome.FAILED})
    text, status = called(f"{BISECT} --versions {VERSIONS}")
    assert status == 1
    assert "there is no change to find: the cell ends as failed both with onnxruntime 1.27.0 and with 1.32.0" in text
    assert len(steps.called) == 4, "the two ends"
    text, status = called(f"{BISECT} --versions {VERSIONS} --environment hare")
    assert (status, "write here in place of hare" in text) == (2, True)


# The table


def cell(model: str, outcome: str, before: str = "", setting: str = "s") -> Any:
    from onnxsmith.base.report.parts.fleet import FleetCell

    return FleetCell(model, setting, "here", outcome, f"{model} {outcome}", "a/b", 1.0, model, before)


def test_what_is_worse() -> None:
    order = [*map(str, Outcome)]
    for place, now in enumerate(order):
        for earlier, before in enumerate(order):
            expected = 0 if "lost" in (now, before) else (place > earlier) - (place < earlier)
            assert cell("m", now, before).change == expected, (now, before)
    assert [cell("m", now, before).change for now, before in (("missing", "done"), ("crashed", ""))] == [0, 0]
    assert sorted(order, key=lambda now: -cell("m", now).harm) == order


def test_new_cells_and_gone_cells_count() -> None:
    cells = (cell("a", "done", "done"), cell("b", "failed"), cell("c", "done"))
    report = tables.report("fleet show", FleetMatrix("r", "s", cells, "old"))
    assert report.verdict is Verdict.DIFFERENT
    assert report.headline.endswith("; worse than in old: none; 1 new and not done: b (s)")
    gone = FleetMatrix("r", "s", cells[:1], "old", gone=(("d", "one"),))
    report = tables.report("fleet show", gone)
    assert report.verdict is Verdict.DIFFERENT
    assert report.headline.endswith("; 1 gone: d (one)")
    assert [(case.name, case.verdict) for case in gone.cases()] == [("a", Verdict.DONE), ("d", Verdict.DIFFERENT)]
    assert tables.report("fleet show", FleetMatrix("r", "s", cells[::2], "old")).verdict is Verdict.DONE
    known = FleetMatrix("r", "s", (cell("a", "failed", "failed"), cell("b", "failed")), "old")
    text = Sarif().texts(tables.report("fleet show", known), "r.sarif", None)["r.sarif"]
    (result,) = json.loads(text)["runs"][0]["results"]
    assert result["message"]["text"].startswith("b: failed"), "the known failure is no alert"
    assert [case.verdict for case in known.cases()] == [Verdict.DONE, Verdict.FAILED]


def test_the_headline_has_a_word_for_each_kind_of_change() -> None:
    changed = [cell("a", "failed", "done"), cell("b", "done", "failed"), cell("c", "failed", "crashed")]
    cells = (*changed, cell("d", "failed"), cell("e", "done"))
    headline = tables.report("fleet show", FleetMatrix("r", "s", cells, "old", gone=(("f", "s"),))).headline
    assert headline.partition("; ")[2] == (
        "1 worse than in old: a (s); 1 new and not done: d (s); 1 gone: f (s); 1 repaired: b (s); "
        "1 better, and not done: c (s)"
    )


def test_what_changed_comes_first_and_whole() -> None:
    cells = tuple(cell(f"m{number:02}", "failed", "done" if number < 30 else "failed") for number in range(40))
    report = tables.report("fleet show", FleetMatrix("r", "s", cells, "old"))
    out = io.StringIO()
    terminal.show(report, Console(file=out, width=120))
    lines = out.getvalue().splitlines()
    head = next(number for number, line in enumerate(lines) if "in old" in line and "now" in line)
    assert all(f"m{number:02}" in line for number, line in enumerate(lines[head + 1 : head + 31]))


def test_a_cell_that_did_not_run_has_no_time() -> None:
    table = FleetMatrix("r", "s", (cell("a", "missing"), cell("b", "failed")))
    missing = replace(table.cells[0], seconds=0.0)
    (listed,) = [block for block in replace(table, cells=(missing, table.cells[1])).blocks()
                 if isinstance(block, Table) and "time" in block.head]  # fmt: skip
    assert [(row[0], row[-1]) for row in listed.rows] == [("b", "1.00 s"), ("a", "")]


def test_a_run_without_all_rows_is_not_done() -> None:
    table = FleetMatrix("r", "s", (cell("a", "done"), cell("b", "missing")))
    assert tables.report("fleet show", table).verdict is Verdict.DIFFERENT
    assert run_notes.of_run(table, driver.Progress()) == ["1 cell of this run has no row yet"]
    assert run_notes.of_run(table, driver.Progress(alone=2))[1:] == [
        "because workers ended unexpectedly, 2 cells ran again, one at a time"
    ]
    for unknown in ("missing", "lost"):
        compared = FleetMatrix("r", "s", (cell("a", "done", "done"), cell("b", unknown, "done")), "old")
        assert tables.report("fleet show", compared).verdict is Verdict.DIFFERENT


def test_a_table_as_json_and_back() -> None:
    table = FleetMatrix("r", "s", (cell("a", "done", "failed"), cell("b", "lost", "done", "t")), "old", 1, 1)
    report = tables.report("fleet run", table)
    again = Report.from_json(report.to_json())
    assert again.part(FleetMatrix) == table


def test_quiet_prints_the_cells_that_are_not_done(path: Path, steps: Steps) -> None:
    """Nothing else. With --since, only those that are worse."""
    steps.endings = {"simplify a.onnx": Outcome.CRASHED}
    for command in ("run p.toml --name first", "show p.toml"):
        text, status = called(f"fleet {command} -q")
        lines = [f"a.onnx ({setting}): crashed: simplify of a.onnx: crashed" for setting in ("one", "two")]
        assert (text.splitlines(), status) == (lines, 1)
    assert called("fleet show p.toml --since first -q") == ("", 0)


def test_a_wrong_value_of_a_plan_is_corrected_in_the_plan(path: Path) -> None:
    """`run` has an option of that name, which would not help."""
    plan(path.parent, f'workers = "two"\n{PLAN}')
    for verb in ("run", "list"):
        (found,) = reported(f"onnxsmith fleet {verb} p.toml")["problems"]
        assert (found["where"], found["fix"]) == ("p.toml, line 1", "write `workers = 2`")


def test_a_misspelled_key_beside_the_right_one_is_removed(path: Path, refused: Refused) -> None:
    plan(path.parent, f'stepps = ["check"]\n{PLAN}')
    with refused("fleet/plan") as refusal:
        run(path)
    assert refusal.problem.fix == "remove stepps, because steps is also given"


def test_the_fix_of_a_run_that_is_missing_names_the_plan(path: Path, steps: Steps, refused: Refused) -> None:
    with refused("fleet/no-run") as refusal:
        verbs.show(path)
    assert f"`onnxsmith fleet run {path}`" in refusal.problem.fix


def test_two_runs_at_once_share_the_work(path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run begins while the first one has computed nothing, and takes the rows that it finds later."""
    real, begun = driver.compute, []

    def compute(*arguments: Any, **named: Any) -> None:
        if not begun:
            begun.append(run(path, name="first"))
        real(*arguments, **named)

    def second(*arguments: Any, **named: Any) -> None:
        monkeypatch.setattr(driver, "compute", real)
        compute(*arguments, **named)

    monkeypatch.setattr(driver, "compute", second)
    report = run(path, name="second")
    assert counts(begun[0]) == (6, 0)
    assert counts(report) == (0, 6)
    assert "another run computed 6 cells in the meantime" in report.notes
    assert steps.verbs.count("check") == 6


def test_runs_begin_with_different_cells(path: Path, steps: Steps) -> None:
    models(path.parent, *(f"{number}.onnx" for number in range(30)))
    cells = cells_of(path)
    with closing():
        store = opened(str(path.parent / "fleet.sqlite"))
        orders = {tuple(cell.key for cell in verbs._wanted(cells, store, ())[0]) for _ in range(3)}
    assert len(orders) == 3


@pytest.mark.parametrize(
    ("table", "package"),
    [
        ('python = "/opt/my python"', "`'/opt/my python' -m pip install onnxslim`"),
        (
            'requirements = ["onnxruntime==1.31.1"]',
            "add onnxslim to the requirements of [environments.other] in the plan",
        ),
    ],
)
def test_the_fix_of_a_cell_is_for_its_environment(
    path: Path, monkeypatch: pytest.MonkeyPatch, table: str, package: str
) -> None:
    """Its commands run with the Python of the environment, as the commands to paste do."""
    plan(path.parent, f'models = ["a.onnx"]\nsteps = ["check"]\n[environments.here]\n[environments.other]\n{table}\n')
    monkeypatch.setattr(made_up, "FIX", "`pip install onnxslim`; or `onnxsmith prune a.onnx`; or `python -c 1`; or --x")

    def ended(verb: str, words: Any, **_: Any) -> StepResult:
        reported = made_up.report("check", Outcome.DIFFERENT, "a/b")
        return StepResult(verb, ("onnxsmith", verb, *words), Outcome.DIFFERENT, "x", 1.0, "a/b", reported)

    monkeypatch.setattr(step_process, "run", ended)
    monkeypatch.setattr(environments, "stamp", lambda environment: environment.name)
    monkeypatch.setattr(environments, "versions_of", lambda python: {})
    monkeypatch.setattr(environments, "interpreter", lambda environment: "/opt/my python")
    (found,) = one_cell.why(path, "a.onnx", "", "other").problems
    python = "'/opt/my python'"
    assert found.fix == f"{package}; or `{python} -m onnxsmith prune a.onnx`; or `{python} -c 1`; or --x"
    (found,) = one_cell.why(path, "a.onnx", "", "here").problems
    assert found.fix == made_up.FIX


@pytest.mark.parametrize("package", ["-r /etc/passwd", "--help", "../wheel.whl", "https://example.org/a.whl", ""])
def test_bisect_asks_for_names_of_packages_only(path: Path, package: str, refused: Refused) -> None:
    """pip would take another text for an option, a file or an address."""
    from onnxsmith.fleet import bisect

    with refused("fleet/versions") as refusal:
        bisect._between(package, "1.0", "2.0")
    assert "is no name of a package" in refusal.problem.what
