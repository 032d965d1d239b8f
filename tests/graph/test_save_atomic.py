"""Whatever happens while a model is written, the target is the whole old model or the whole new one."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.system import disk, moving
from onnxsmith.graph.files import save as room
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import commit, save, save_for_now, staged
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.model_copy import cloned
from tests.conftest import Refused

ROOT = Path(__file__).parents[2]
OLD, NEW = 1.0, 2.0
POINTS = ["write", "weights", "flush", "data", "model"]
"""Half of the model written, half of its weights, before they are flushed, before either file moves into place."""


def filled(number: float, size: int = 5000) -> ir.Model:
    model = from_text('<ir_version: 10, opset_import: ["": 20]>\ng (float x) => (float y) { y = Abs(x) }')
    for name in ("a", "b"):
        tensor = ir.Tensor(np.full(size, number, np.float32), name=name)
        model.graph.register_initializer(ir.Value(name=name, const_value=tensor))
    return model


def numbers(path: Path) -> set[float]:
    """The numbers that the model's weights are filled with."""
    weights = (value.const_value for value in load(path).graph.initializers.values())
    return {float(number) for weight in weights if weight is not None for number in weight.numpy()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def strike(point: str, act: Callable[[], None], patch: Callable[[Any, str, Any], None]) -> None:
    """Makes `act` happen at that point of the next save."""

    def half_written(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            act()
        raise AssertionError

    def half_of_weights(tensor: ir.Tensor, file: Any) -> None:
        file.write(tensor.tobytes()[: tensor.nbytes // 2])
        file.flush()
        act()

    def at_once(*_: object) -> None:
        act()

    def at(ending: str) -> Callable[[Path, Path], None]:
        move = moving.HERE.move

        def moved(finished: Path, target: Path) -> None:
            if target.name.endswith(ending):
                act()
            move(finished, target)

        return moved

    where, name, does = {
        "write": (Path, "write_bytes", half_written),
        "weights": (ir.Tensor, "tofile", half_of_weights),
        "flush": (disk.HERE, "flush", at_once),
        "data": (moving.HERE, "move", at(".data")),
        "model": (moving.HERE, "move", at(".onnx")),
        "moved": (room, "_remove", at_once),
    }[point]
    patch(where, name, does)


def disk_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt() -> None:
    raise KeyboardInterrupt


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("old_external", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_a_full_disk_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, old_external: bool, refused: Refused
) -> None:
    save(filled(OLD), tmp_path / "m.onnx", external_data=old_external)
    before = names(tmp_path)
    strike(point, disk_full, monkeypatch.setattr)
    with refused("save/failed") as refusal:
        save(filled(NEW), tmp_path / "m.onnx", external_data=True)
    assert refusal.problem.what == "the disk is full"
    assert refusal.problem.fix == "free some space and run the command again; the old file is unchanged"
    assert names(tmp_path) == before
    assert numbers(tmp_path / "m.onnx") == {OLD}


@pytest.mark.parametrize(
    ("number", "free", "what"),
    [
        (None, 2**20 - 1, "the disk is full"),
        (None, 2**20, "the model could not be written"),
        (errno.EACCES, 0, "the model could not be written"),
        (errno.EDQUOT, 2**40, "the disk is full"),
    ],
)
def test_a_short_write_without_an_error_number_is_a_full_disk_where_less_than_a_mebibyte_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, number: int | None, free: int, what: str
) -> None:
    def short() -> None:
        raise OSError("5000 requested and 17 written") if number is None else OSError(number, "refused")

    strike("write", short, monkeypatch.setattr)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    with refused("save/failed") as refusal:
        save(filled(NEW), tmp_path / "m.onnx")
    assert refusal.problem.what == what


def test_only_a_temporary_file_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(disk.HERE, "flush", flushed.append)
    save_for_now(filled(OLD), tmp_path / "now.onnx", external_data=True)
    assert flushed == []
    save(filled(OLD), tmp_path / "m.onnx", external_data=True)
    assert [file.name for file in flushed] == ["m.onnx", "m.onnx.data"]


@pytest.mark.parametrize("point", POINTS)
def test_an_interrupt_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    save(filled(OLD), tmp_path / "m.onnx", external_data=True)
    before = names(tmp_path)
    strike(point, interrupt, monkeypatch.setattr)
    with pytest.raises(KeyboardInterrupt):
        save(filled(NEW), tmp_path / "m.onnx", external_data=True)
    assert names(tmp_path) == before
    assert numbers(tmp_path / "m.onnx") == {OLD}


def die_at(point: str, target: str, external: bool) -> None:
    """Runs in a process of its own: saves a model, and is killed on the way."""
    strike(point, die, setattr)
    save(filled(NEW), target, external_data=external)


@pytest.mark.parametrize(
    ("point", "whole"), [("write", OLD), ("weights", OLD), ("data", OLD), ("model", OLD), ("moved", NEW)]
)
def test_a_killed_process_leaves_a_whole_model(tmp_path: Path, point: str, whole: float) -> None:
    killed_at(point, tmp_path / "m.onnx", was_external=True, external=True)
    assert numbers(tmp_path / "m.onnx") == {whole}


@pytest.mark.parametrize(("was_external", "external", "point", "whole"), [
    *((was, now, point, whole) for was, now in ((True, False), (False, True), (False, False))
      for point, whole in (("flush", OLD), ("model", OLD), ("moved", NEW))),
    (False, True, "data", OLD),
])  # fmt: skip
def test_a_kill_between_two_steps_leaves_a_whole_model_when_weights_move(
    tmp_path: Path, was_external: bool, external: bool, point: str, whole: float
) -> None:
    """The data file of the old model may stay beside the new model, which does not read it."""
    killed_at(point, tmp_path / "m.onnx", was_external=was_external, external=external)
    assert numbers(tmp_path / "m.onnx") == {whole}
    save(filled(3.0), tmp_path / "m.onnx", external_data=external)
    assert numbers(tmp_path / "m.onnx") == {3.0}
    assert not [name for name in names(tmp_path) if "onnxsmith" in name]


def killed_at(point: str, target: Path, *, was_external: bool, external: bool) -> None:
    save(filled(OLD), target, external_data=was_external)
    code = f"from {__name__} import die_at; die_at({point!r}, {str(target)!r}, {external})"
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL


def test_a_new_model_is_saved_where_a_killed_process_left_its_files(tmp_path: Path) -> None:
    test_a_killed_process_leaves_a_whole_model(tmp_path, "model", OLD)
    save(filled(3.0), tmp_path / "m.onnx", external_data=True)
    assert numbers(tmp_path / "m.onnx") == {3.0}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("nothing may be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # weights are mapped until they are collected


@pytest.mark.parametrize("external", [False, True])
def test_a_disk_that_is_really_full_leaves_the_old_model(small_disk: Path, external: bool, refused: Refused) -> None:
    save(filled(OLD, 50_000), small_disk / "m.onnx", external_data=external)
    before = names(small_disk)
    with refused("save/failed") as refusal:
        save(filled(NEW, 500_000), small_disk / "m.onnx", external_data=external)
    assert refusal.problem.what == "the disk is full"
    assert names(small_disk) == before
    assert numbers(small_disk / "m.onnx") == {OLD}


def test_a_stage_that_is_not_committed_leaves_nothing(tmp_path: Path) -> None:
    with staged(tmp_path / "m.onnx") as stage:
        stage.write(filled(NEW), external_data=True)
        assert numbers(stage.path) == {NEW}
    assert names(tmp_path) == []


def write_and_fail(path: Path) -> None:
    with staged(path) as stage:
        stage.write(filled(NEW))
        raise RuntimeError


def test_a_stage_whose_check_fails_leaves_the_old_model(tmp_path: Path) -> None:
    save(filled(OLD), tmp_path / "m.onnx")
    with pytest.raises(RuntimeError):
        write_and_fail(tmp_path / "m.onnx")
    assert names(tmp_path) == ["m.onnx"]
    assert numbers(tmp_path / "m.onnx") == {OLD}


def test_two_writers_do_not_take_each_others_data_file(tmp_path: Path, refused: Refused) -> None:
    with staged(tmp_path / "m.onnx") as slow:
        slow.write(filled(OLD), external_data=True)
        save(filled(NEW), tmp_path / "m.onnx", external_data=True)
        with refused("save/failed"):
            slow.commit()
    assert numbers(tmp_path / "m.onnx") == {NEW}
    assert names(tmp_path) == ["m.onnx", "m.onnx.data"]


def write_both(folder: Path, number: float) -> None:
    with staged(folder / "a.onnx") as one, staged(folder / "b.onnx") as other:
        for stage in (one, other):
            stage.write(filled(number), external_data=True)
        assert commit(one, other)[0] == folder / "a.onnx"


@pytest.mark.parametrize("old", [[], ["a.onnx"], ["a.onnx", "b.onnx"]])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_two_models_go_into_place_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, old: list[str], at: int
) -> None:
    for name in old:
        save(filled(OLD), tmp_path / name, external_data=True)
    before = names(tmp_path)
    moves = 0

    def failing(move: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
        def moved(self: Path, target: Path) -> Path:
            nonlocal moves
            moves += 1
            if moves == at:
                raise PermissionError(errno.EACCES, "refused", str(target))
            return move(self, target)

        return moved

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing(Path.rename))
        patch.setattr(Path, "replace", failing(Path.replace))
        with refused("save/failed"):
            write_both(tmp_path, NEW)
    assert names(tmp_path) == before
    assert all(numbers(tmp_path / name) == {OLD} for name in old)
    write_both(tmp_path, NEW)
    assert all(numbers(tmp_path / name) == {NEW} for name in ("a.onnx", "b.onnx"))
    assert len(names(tmp_path)) == 4


def test_where_links_are_impossible_the_old_model_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    save(filled(OLD), tmp_path / "a.onnx")
    rename = Path.rename

    def linked(self: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no links here")

    def renamed(self: Path, target: Path) -> Path:
        if target.name == "b.onnx":
            disk_full()
        return rename(self, target)

    monkeypatch.setattr(Path, "hardlink_to", linked)
    monkeypatch.setattr(Path, "rename", renamed)
    with refused("save/failed"):
        write_both(tmp_path, NEW)
    assert names(tmp_path) == ["a.onnx"]
    assert numbers(tmp_path / "a.onnx") == {OLD}


@pytest.mark.parametrize("gone", ["a.onnx", "a.onnx.data"])
def test_placed_files_that_somebody_removed_meanwhile_do_not_hinder_the_undoing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused, gone: str
) -> None:
    rename = Path.rename

    def renamed(self: Path, target: Path) -> Path:
        if target.name == "b.onnx":
            (tmp_path / gone).unlink()
            disk_full()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", renamed)
    with refused("save/failed") as refusal:
        write_both(tmp_path, NEW)
    assert refusal.problem.what == "the disk is full"
    assert names(tmp_path) == []


def test_a_stage_that_nobody_wrote_to_is_not_committed(tmp_path: Path) -> None:
    with staged(tmp_path / "m.onnx") as stage, pytest.raises(AssertionError, match="nothing was written"):
        stage.commit()


# Over the model that the weights are read from


def weight(model: ir.Model, name: str) -> ir.TensorProtocol:
    tensor = model.graph.initializers[name].const_value
    assert tensor is not None
    return tensor


@pytest.fixture
def in_place(tmp_path: Path) -> tuple[Path, ir.Model]:
    """A model in a file with external data, loaded, with one weight changed."""
    path = tmp_path / "m.onnx"
    save(filled(OLD), path, external_data=True)
    model = load(path)
    model.graph.initializers["b"].const_value = ir.Tensor(np.full(5000, NEW, np.float32), name="b")
    return path, model


@pytest.mark.parametrize("external", [None, True, False])
@pytest.mark.parametrize("mapped", [False, True])
def test_a_model_is_written_over_itself(in_place: tuple[Path, ir.Model], mapped: bool, external: bool | None) -> None:
    path, model = in_place
    view = weight(model, "a").numpy() if mapped else None
    save(model, path, external_data=external)
    assert weight(load(path), "a").numpy().tolist() == [OLD] * 5000
    assert weight(load(path), "b").numpy().tolist() == [NEW] * 5000
    assert view is None or (view == OLD).all()


def test_the_old_data_file_goes(in_place: tuple[Path, ir.Model]) -> None:
    path, model = in_place
    assert save(model, path) == [path, path.with_name("m.onnx.2.data")]
    assert names(path.parent) == ["m.onnx", "m.onnx.2.data"]


def test_the_old_data_file_goes_when_weights_are_taken_inside(in_place: tuple[Path, ir.Model]) -> None:
    path, model = in_place
    assert save(model, path, external_data=False) == [path]
    assert names(path.parent) == ["m.onnx"]


@pytest.mark.parametrize("external", [None, False])
@pytest.mark.parametrize("copies", [1, 3])
def test_models_in_memory_stay_whole(in_place: tuple[Path, ir.Model], external: bool | None, copies: int) -> None:
    path, original = in_place
    models = [original]
    for number in range(copies):
        models.append(cloned(models[-1]))
        tensor = ir.Tensor(np.full(5000, 3.0 + number, np.float32), name="b")
        models[-1].graph.initializers["b"].const_value = tensor
        save(models[-1], path, external_data=external)
    for number, model in enumerate(models):
        save(model, path.with_name("again.onnx"))
        assert numbers(path.with_name("again.onnx")) == {OLD, NEW if number == 0 else 2.0 + number}


def test_names_of_data_files_that_come_again_do_not_mix_up_models(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    models = []
    for number in (1.0, 2.0, 3.0, 4.0):
        save(filled(number), path, external_data=True)
        models.append(load(path))
    for number, model in enumerate(models, 1):
        assert (weight(model, "a").numpy() == number).all()
        save(model, tmp_path / "again.onnx", external_data=True)
        assert numbers(tmp_path / "again.onnx") == {number}


@pytest.mark.parametrize("external", [None, True, False])
def test_a_model_is_written_over_itself_again_and_again(in_place: tuple[Path, ir.Model], external: bool | None) -> None:
    path, model = in_place
    for number in (3.0, 4.0, 5.0):
        model.graph.initializers["b"].const_value = ir.Tensor(np.full(5000, number, np.float32), name="b")
        save(model, path, external_data=external)
        assert numbers(path) == {OLD, number}
    save(model, path, external_data=True)
    assert numbers(path) == {OLD, 5.0}


@pytest.mark.parametrize("name", ["weights.bin", "other.onnx.data", "m.onnx.data.old", "xm.onnx.data"])
def test_files_of_others_are_left_alone(tmp_path: Path, name: str) -> None:
    model = filled(OLD)
    tensor = weight(model, "a").numpy()
    tensor.tofile(tmp_path / name)
    model.graph.initializers["a"].const_value = ir.ExternalTensor(
        name, 0, tensor.nbytes, ir.DataType.FLOAT, shape=ir.Shape(tensor.shape), name="a", base_dir=tmp_path
    )
    (tmp_path / "m.onnx").write_bytes(ir.to_proto(model).SerializeToString())
    save(load(tmp_path / "m.onnx"), tmp_path / "m.onnx")
    assert (tmp_path / name).is_file()
    assert numbers(tmp_path / "m.onnx") == {OLD}


def test_a_data_file_that_nobody_refers_to_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "m.onnx.data").write_text("mine")
    save(filled(NEW), tmp_path / "m.onnx", external_data=True)
    assert (tmp_path / "m.onnx.data").read_text() == "mine"
    assert numbers(tmp_path / "m.onnx") == {NEW}


def test_what_was_no_model_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_text("not a model")
    save(filled(NEW), tmp_path / "m.onnx")
    assert numbers(tmp_path / "m.onnx") == {NEW}


# Large


def copy_a_large_model(source: str, target: str) -> None:
    """Runs in a process of its own: prints by how many MB its memory grew while it loaded and saved a model."""
    import resource

    save(filled(OLD), Path(target).with_name("warm.onnx"), external_data=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    save(load(source), target)
    grew = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    sys.stdout.write(f"{grew}\n")


@pytest.fixture
def roomy(tmp_path: Path) -> Iterator[Path]:
    """A folder for large files: in memory where there is much of it, because a disk takes ten seconds."""
    shared = Path("/dev/shm")
    parent = shared if shared.is_dir() and shutil.disk_usage(shared).free > 8 * 2**30 else tmp_path
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        yield Path(folder)


def test_a_model_of_over_2_gb_is_copied_without_being_read(roomy: Path) -> None:
    elements = 550_000_000
    tensor = ir.ExternalTensor(
        "m.data", 0, 4 * elements, ir.DataType.FLOAT, shape=ir.Shape([elements]), name="w", base_dir=roomy
    )
    model = filled(OLD)
    model.graph.register_initializer(ir.Value(name="w", const_value=tensor))
    (roomy / "m.onnx").write_bytes(ir.to_proto(model).SerializeToString())
    with (roomy / "m.data").open("wb") as data:
        data.truncate(4 * elements)
        data.seek(4 * elements - 4)
        data.write(np.float32(7).tobytes())
    paths = f"{str(roomy / 'm.onnx')!r}, {str(roomy / 'n.onnx')!r}"
    code = f"from {__name__} import copy_a_large_model; copy_a_large_model({paths})"
    grew = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert int(grew) < 100
    copied = weight(load(roomy / "n.onnx"), "w")
    assert (copied.numpy()[-1], copied.shape) == (7, (elements,))
