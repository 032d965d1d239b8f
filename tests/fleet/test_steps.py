"""Steps: each verb of the command line has its role, and a cell hands its model on from step to step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.base import rooms
from onnxsmith.base.system import machine, memory_limit
from onnxsmith.cli.commands.base import Command
from onnxsmith.fleet import cell_limits, cell_report, cell_run, environments, kept_files, step_process, steps
from onnxsmith.fleet.plan import Environment
from onnxsmith.fleet.row import Outcome, StepResult
from onnxsmith.fleet.stores.base import closing, opened
from onnxsmith.runtimes import _call_limits
from onnxsmith.runtimes._call_limits import MEMORY
from tests.conftest import Refused
from tests.fleet import made_up
from tests.fleets import Steps, cells_of, models, plan

NEITHER = {"diagnose", "reduce", "bisect"}
"""Verbs about one model."""


def test_each_verb_of_a_plan_is_a_command() -> None:
    commands = {id_.replace("/", " ") for id_ in rooms.classes("onnxsmith.cli.commands", Command)}
    assert steps.VERBS.keys() <= commands
    assert not NEITHER & steps.VERBS.keys()
    assert commands >= NEITHER


def test_a_verb_that_writes_has_an_output() -> None:
    commands = rooms.classes("onnxsmith.cli.commands", Command)
    for verb, role in steps.VERBS.items():
        fields = {field.metadata.get("short") for field in _fields(commands[verb.replace(" ", "/")])}
        assert ("-o" in fields) or role not in (steps.Role.MAKES, steps.Role.REWRITES), verb


def _fields(command: type[Command]) -> list[object]:
    from onnxsmith.base import options

    return list(options.fields_of(command))


def test_words() -> None:
    assert steps.words("--a 'b c'") == ("--a", "b c")
    assert steps.words(["--a", "b c"]) == ("--a", "b c")
    assert [steps.words(value) for value in ("'", 3, [3], None, {})] == [None] * 5


# The chain


def row_of(folder: Path, text: str, **more: str) -> cell_run.Row:
    (cell,) = cells_of(plan(folder, text))
    return cell_run.run(cell)


def test_a_file_goes_from_step_to_step(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "a.onnx")
    row = row_of(
        tmp_path,
        'models = ["a.onnx"]\nsteps = ["export", "inspect", "simplify", "check", "opset", "compare", "bench"]\n'
        '[options]\nopset = "--to 23"',
    )
    assert [tuple(word.replace(str(tmp_path), "") for word in result.command[1:]) for result in row.steps] == [
        ("inspect", "a.onnx"),
        ("simplify", "a.onnx", "-o", "TEMPORARY/2-simplify.onnx"),
        ("check", "TEMPORARY/2-simplify.onnx"),
        ("opset", "TEMPORARY/2-simplify.onnx", "--to", "23", "-o", "TEMPORARY/4-opset.onnx"),
        ("compare", "a.onnx", "TEMPORARY/4-opset.onnx"),
        ("bench", "TEMPORARY/4-opset.onnx"),
    ]
    assert (row.outcome, row.headline) == (Outcome.DONE, "inspect of a.onnx: done")
    assert not list(tmp_path.glob("*simplify*"))


def test_a_module_is_exported_and_its_file_is_the_first(tmp_path: Path, steps: Steps) -> None:
    (tmp_path / "nets.py").touch()
    row = row_of(tmp_path, 'models = ["nets.py:build"]\nsteps = ["export", "simplify", "compare"]')
    assert [result.command[1:] for result in row.steps] == [
        ("export", "nets.py:build", "-o", "TEMPORARY/1-export.onnx"),
        ("simplify", "TEMPORARY/1-export.onnx", "-o", "TEMPORARY/2-simplify.onnx"),
        ("compare", "TEMPORARY/1-export.onnx", "TEMPORARY/2-simplify.onnx"),
    ]


def test_options_of_a_folder_and_of_a_model(tmp_path: Path, steps: Steps) -> None:
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text("{}")
    row_of(
        tmp_path,
        'models = [{ source = "bert", options = { export = "--dim batch=4" } }]\nsteps = ["export"]\n'
        '[options]\nexport = "--task fill-mask"',
    )
    assert steps.called[0][:-1] == ("export", "bert", "--transformers", "--task", "fill-mask", "--dim", "batch=4", "-o")


@pytest.mark.parametrize(
    "ending", [Outcome.FAILED, Outcome.CRASHED, Outcome.TIMEOUT, Outcome.MEMORY, Outcome.DIFFERENT]
)
def test_a_step_that_writes_nothing_ends_the_cell(tmp_path: Path, steps: Steps, ending: Outcome) -> None:
    models(tmp_path, "a.onnx")
    steps.endings = {"simplify": ending}
    row = row_of(tmp_path, 'models = ["a.onnx"]\nsteps = ["simplify", "check"]')
    assert steps.verbs == ["simplify"]
    assert (row.outcome, row.headline) == (ending, f"simplify of a.onnx: {ending}")


def test_a_step_that_only_reads_ends_no_cell(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "a.onnx")
    steps.endings = {"check": Outcome.DIFFERENT, "inspect": Outcome.CANNOT_TELL}
    row = row_of(tmp_path, 'models = ["a.onnx"]\nsteps = ["inspect", "check", "run"]')
    assert steps.verbs == ["inspect", "check", "run"]
    assert (row.outcome, row.headline) == (Outcome.DIFFERENT, "check of a.onnx: different")


@pytest.mark.parametrize(
    ("limit", "variable", "inside"),
    [(0, None, None), (0, "2GB", "2GB"), (2**30, None, "1073741824"), (2**30, "0", "1073741824"),
     (2**30, "2GB", "1073741824"), (2**30, "500MB", "500000000"), (2**30, "much", "much")],
)  # fmt: skip
def test_the_limit_of_the_plan_holds_in_a_cell(
    limit: int, variable: str | None, inside: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MEMORY, raising=False)
    if variable is not None:
        monkeypatch.setenv(MEMORY, variable)
    variables = cell_limits.variables(limit)
    assert {**os.environ, **variables}.get(MEMORY) == inside
    assert (_call_limits.OF_PLAN in variables) == (inside == "1073741824"), "messages name the plan if its limit holds"


def test_advice_on_memory_names_the_limit_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(machine.HERE), "memory", lambda self: 10 * 2**30)
    monkeypatch.setenv(_call_limits.OF_PLAN, "1")
    fix = _call_limits.shortage("tract", 2**30, "", "bad_alloc").problem.fix
    assert fix == 'give a smaller input; or allow more: memory_limit = "8GB" in the plan'
    fix = _call_limits.perhaps_short(6 * 2**30)
    assert fix.endswith('allow more: memory_limit = "10GB" in the plan')
    fix = _call_limits.shortage("tract", 10 * 2**30, "", "bad_alloc").problem.fix
    assert fix == "give a smaller input; or use a machine with more memory than 10.7 GB"


def test_a_small_limit_is_not_rounded_to_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY, "20MB")
    assert (
        f"more than the 20 MB that {MEMORY} allows" in _call_limits.shortage("tract", 20 * 10**6, "", "").problem.what
    )
    assert "the process may use 500 KB" in _call_limits.perhaps_short(500_000)
    assert cell_limits.ran_out(30 * 10**6).endswith("the 30 MB that memory_limit of the plan allows")


def test_a_shortage_names_the_limit_that_was_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan's, that of the environment, or the memory that the machine has free: the advice raises that one only."""
    monkeypatch.setattr(type(machine.HERE), "memory", lambda self: 24 * 10**9)
    wants_50_gb = "Failed to allocate memory for requested buffer of size 50000000000"
    monkeypatch.setenv(MEMORY, "6GB")
    found = _call_limits.shortage("tract", 6 * 10**9, "", "bad_alloc").problem
    assert found.what == f"tract needed more than the 6 GB that {MEMORY} allows"
    found = _call_limits.shortage("tract", 6 * 10**9, "", "bad_alloc", of_plan=True).problem
    assert found.what.endswith("6 GB that memory_limit of the plan allows")
    found = _call_limits.shortage("tract", 17 * 10**9, "", "bad_alloc", asked=25 * 10**9).problem
    assert "17 GB: the share of this machine's free memory that the process may use" in found.what
    assert MEMORY not in found.fix
    assert "end other programs" in found.fix
    for limit, asked in (17, 25), (6, 6):
        found = _call_limits.shortage("tract", limit * 10**9, "", wants_50_gb, asked=asked * 10**9).problem
        assert found.fix == "give a smaller input; or use a machine with more memory than 24 GB"


@pytest.mark.parametrize(
    "said",
    [
        "DefaultCPUAllocator: you tried to allocate 50000000000 bytes. Error code 12 (Cannot allocate memory)",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 46.6 GiB for an array",
    ],
)
def test_a_shortage_in_the_step_itself_names_the_limit(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(machine.HERE), "memory", lambda self: 64 * 10**9)
    monkeypatch.setattr(type(memory_limit.HERE), "most", lambda self: 60 * 10**9)
    first = {"id": "export/target-factory", "what": "the factory raised an error", "where": "nets.py:15", "why": said}
    report = {"verdict": "failed", "problems": [{**first, "fix": "call the factory in python and fix the error"}]}
    found = cell_limits.told(report, "export", 6 * 10**9)["problems"][0]
    assert (found["id"], found["where"]) == ("runtime/memory", "nets.py:15")
    assert found["what"] == "export needed more than the 6 GB that memory_limit of the plan allows"
    assert found["fix"].endswith('memory_limit = "64GB" in the plan')
    assert cell_limits.told(report, "export", 0) == report
    assert cell_limits.ran_out(6 * 10**9) == (
        "the process needed more than the 6 GB that memory_limit of the plan allows"
    )
    monkeypatch.setattr(type(memory_limit.HERE), "most", lambda self: 5 * 10**9)
    assert (
        "the share of this machine's free memory"
        in cell_limits.told(report, "export", 6 * 10**9)["problems"][0]["what"]
    )
    assert "that this machine had free" in cell_limits.ran_out(6 * 10**9)


def test_outcomes_from_good_to_bad() -> None:
    assert [str(one) for one in sorted(Outcome, key=lambda one: one.harm)] == [
        "done", "cannot-tell", "refused", "different", "failed", "memory", "timeout", "crashed", "lost",
    ]  # fmt: skip


def test_no_step_is_needed(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "a.onnx")
    row = row_of(tmp_path, 'models = ["a.onnx"]\nsteps = ["export"]')
    assert (row.outcome, row.headline, row.steps) == (Outcome.DONE, "no step was needed", ())


def test_what_a_row_says(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "a.onnx")
    (cell,) = cells_of(plan(tmp_path))
    row = cell_run.run(cell)
    assert (row.key, row.model, row.setting, row.environment) == (cell.key, *cell.place)
    assert {"python", "onnx", "numpy"} <= row.versions.keys()
    assert row.files == {}
    assert row.seconds > 0
    assert row.at.endswith("+00:00")


def test_limits_and_threads_of_a_step(tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    models(tmp_path, "a.onnx")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "5")
    limits = 'models = ["a.onnx"]\nsteps = ["check"]\ntime_limit = 7\nmemory_limit = "1GB"'
    (cell,) = cells_of(plan(tmp_path, limits))
    cell_run.run(replace(cell, threads=3))
    (how,) = steps.how
    assert (how["seconds"], how["memory"], how["folder"]) == (7, 10**9, str(tmp_path))
    variables = how["variables"]
    assert variables["OMP_NUM_THREADS"] == "3"
    assert variables[MEMORY] == str(10**9)
    assert "MKL_NUM_THREADS" not in variables, "what the user set stands"
    assert not Path(variables["TMPDIR"]).exists()


def test_a_cell_leaves_no_folder(tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    models(tmp_path, "a.onnx")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))

    def crash() -> None:
        assert list((tmp_path / "tmp").iterdir())
        raise step_process.StoppedError

    steps.endings = {"check": crash}
    with pytest.raises(step_process.StoppedError):
        row_of(tmp_path, 'models = ["a.onnx"]\nsteps = ["simplify", "check"]')
    assert not list((tmp_path / "tmp").iterdir())


def test_files_of_the_cell_have_the_names_that_a_user_knows(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No path of the temporary folder is left in a row: it is gone when the row is read."""

    models(tmp_path, "a.onnx")

    def telling(verb: str, words: Sequence[str], **how: Any) -> StepResult:
        folder = Path(how["variables"]["TMPDIR"]).parent
        text = f"{words[0]} and {words[-1]} in {folder}: see {folder}/step-1/x.log"
        report = {"verdict": "done", "headline": text, "files": {words[-1]: [text]}, "models": [{"path": words[0]}]}
        return replace(steps.run(verb, words, **how), headline=text, report=report, said=text)

    monkeypatch.setattr(step_process, "run", telling)
    for source, name in (("a.onnx", "a.onnx"), (f"file://{tmp_path}/a.onnx", f"file://{tmp_path}/a.onnx")):
        row = row_of(tmp_path, f"models = ['{source}']\nsteps = ['simplify', 'check']")
        first, second = row.steps
        text = f"{name} and 1-simplify.onnx in a temporary folder: see step-1/x.log"
        assert (first.headline, first.said) == (text, text)
        assert first.report is not None
        assert first.report["files"] == {"1-simplify.onnx": [text]}
        assert first.report["models"] == [{"path": name}]
        assert second.headline.startswith("1-simplify.onnx and ")
        assert ".cell" not in row.to_json()


# Kept files


def test_files_are_kept_with_their_digests(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "deep/a.onnx")
    text = 'models = ["deep/a.onnx"]\nsteps = ["simplify", "strip", "check"]\nkeep = "out"'
    row = row_of(tmp_path, text)
    assert [Path(name).name for name in row.files] == ["1-simplify.onnx", "2-strip.onnx"]
    assert all((tmp_path / name).is_file() for name in row.files)
    assert kept_files.are_there(row.files, tmp_path)
    (tmp_path / list(row.files)[1]).unlink()
    assert not kept_files.are_there(row.files, tmp_path)


def test_the_file_of_an_earlier_run_does_not_pass_for_that_of_this_one(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "a.onnx")
    text = 'models = ["a.onnx"]\nsteps = ["simplify", "check"]\nkeep = "out"'
    assert row_of(tmp_path, text).files
    steps.endings = {"simplify": Outcome.FAILED}
    assert not row_of(tmp_path, text).files
    assert steps.verbs[2:] == ["simplify"]
    assert not list(tmp_path.glob("out/**/*simplify.onnx"))


def test_models_with_like_names_keep_their_files_apart(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "a/b.onnx", "a b.onnx", "a_b.onnx", "ä:b.onnx")
    text = (
        'models = ["**/*.onnx", { source = "a/b.onnx", name = ".." }]\nsteps = ["simplify"]\nkeep = "out"\n'
        '[settings."../up"]\n[settings."."]'
    )
    rows = [cell_run.run(cell) for cell in cells_of(plan(tmp_path, text))]
    files = [name for row in rows for name in row.files]
    assert len(set(files)) == len(files) == 8
    assert all((tmp_path / name).resolve().is_relative_to(tmp_path / "out") for name in files)
    assert all(len(Path(name).parts) == 5 for name in files)


def test_kept_files_are_no_models_of_the_next_run(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "deep/a.onnx", "out/b.onnx", "out/c/d/e/f.onnx")
    path = plan(tmp_path, 'models = ["**/*.onnx"]\nsteps = ["simplify"]\nkeep = "out"')
    before = cells_of(path)
    assert [cell_run.run(cell).outcome for cell in before] == [Outcome.DONE] * 3
    assert len(list(tmp_path.glob("out/**/1-simplify.onnx"))) == 3
    assert cells_of(path) == before


def test_a_folder_in_the_place_of_a_model(tmp_path: Path, refused: Refused) -> None:
    models(tmp_path, "a.onnx")
    with refused("fleet/plan") as refusal:
        cells_of(plan(tmp_path, 'models = ["a.onnx"]\nsteps = ["simplify"]\nkeep = "."'))
    assert "but that is a file" in refusal.problem.why


def test_reasons_name_the_model_in_place_of_a_copy_of_it(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    models(tmp_path, "a.onnx")

    def run(verb: str, words: Sequence[str], **how: Any) -> StepResult:
        said = f"Load model from {how['variables']['TMPDIR']}/onnxsmith-l_ze8xse/model.onnx failed:bad shape"
        return replace(steps.run(verb, words, **how), headline=said)

    monkeypatch.setattr(step_process, "run", run)
    (cell,) = cells_of(plan(tmp_path, 'models = ["a.onnx"]\nsteps = ["simplify", "check"]'))
    said = [step.headline for step in cell_run.run(cell).steps]
    assert said == [f"Load model from {name} failed:bad shape" for name in ("a.onnx", "1-simplify.onnx")]


# What cannot begin


def unreachable(tmp_path: Path) -> str:
    return f'models = ["file://{tmp_path}/a.onnx"]\nsteps = ["check"]'


def test_a_file_that_cannot_be_fetched_is_tried_again(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "a.onnx")
    (cell,) = cells_of(plan(tmp_path, unreachable(tmp_path)))
    (tmp_path / "a.onnx").unlink()
    row = cell_run.run(cell)
    assert (row.outcome, row.problem, steps.called) == (Outcome.LOST, "fleet/unreachable", [])
    assert row.headline.startswith("the address cannot be reached: FileNotFoundError: ")
    models(tmp_path, "a.onnx")
    assert cell_run.run(cell).outcome is Outcome.DONE


def test_a_fetched_file_is_the_model(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "a.onnx")
    row = row_of(tmp_path, unreachable(tmp_path).replace('"check"', '"simplify", "compare"'))
    assert [result.command[1:3] for result in row.steps] == [
        ("simplify", "TEMPORARY/source/a.onnx"),
        ("compare", "TEMPORARY/source/a.onnx"),
    ]


def test_an_interpreter_that_is_not_there(tmp_path: Path, refused: Refused) -> None:
    for python in (str(tmp_path / "python"), str(tmp_path)):
        with refused("fleet/environment"):
            environments.stamp(Environment("x", python))


# Rows are computed once


def test_a_row_that_is_there_is_not_computed(tmp_path: Path, steps: Steps) -> None:
    models(tmp_path, "a.onnx")
    (cell,) = cells_of(plan(tmp_path, 'models = ["a.onnx"]\nsteps = ["check"]'))
    address = str(tmp_path / "s.sqlite")
    with closing():
        assert cell_run.compute(cell, address)[0] == cell.key
        cell_run.compute(cell, address)
        assert len(steps.called) == 1
        steps.endings = {"check": Outcome.DIFFERENT}
        cell_run.compute(cell, address, again=True)
        kept = opened(address).row(cell.key)
        assert kept is not None
        assert kept.outcome is Outcome.DIFFERENT
        assert len(steps.called) == 2


def test_why_names_the_time_limit(tmp_path: Path) -> None:
    """A step that was stopped gave no report, so its problem is said here."""
    place = ("a.onnx", "default", "here")
    row = made_up.row(place, Outcome.TIMEOUT, headline="stopped after 4 s in the stage 'verify'")
    (found,) = cell_report.of_row("fleet why", row, place, "", whole=True).problems
    assert (found.id, found.what) == ("runtime/timeout", "compare was stopped after 4 s in the stage 'verify'")
    assert "`time_limit = 20` in the plan" in found.fix
