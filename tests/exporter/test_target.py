"""Targets: `file.py:factory` and `package.module:factory`, and what goes wrong with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.exporter import factory

GOOD = """
import torch
def alone(): return torch.nn.ReLU()
def with_args(): return torch.nn.ReLU(), (torch.rand(2),)
def with_one(): return torch.nn.ReLU(), torch.rand(2)
def with_kwargs(): return torch.nn.ReLU(), {"input": torch.rand(2)}
def with_both(): return torch.nn.ReLU(), (), {"input": torch.rand(2)}
def nothing(): return None
def fails(): return 1 / 0
def wants(size): return torch.nn.ReLU()
made = torch.nn.ReLU()
number = 3
class Net(torch.nn.ReLU): pass
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(GOOD)
    return tmp_path / "model.py"


def problem_of(target: str) -> Problem:
    with pytest.raises(OnnxsmithError) as caught:
        factory.load(target)
    return caught.value.problem


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "given"),
    [
        ("alone", 0, 0, False),
        ("with_args", 1, 0, True),
        ("with_one", 1, 0, True),
        ("with_kwargs", 0, 1, True),
        ("with_both", 0, 1, True),
        ("made", 0, 0, False),
        ("Net", 0, 0, False),
    ],
)
def test_what_a_factory_may_give(file: Path, name: str, args: int, kwargs: int, given: bool) -> None:
    model = factory.load(f"{file}:{name}")
    assert factory.is_module(model.module)
    assert (len(model.args), len(model.kwargs), model.given) == (args, kwargs, given)


@pytest.mark.parametrize(
    ("name", "says"),
    [("nothing", "NoneType"), ("wants", "size"), ("absent", "alone"), ("number", "callable")],
)
def test_what_it_may_not(file: Path, name: str, says: str) -> None:
    problem = problem_of(f"{file}:{name}")
    assert problem.id == "export/target-factory"
    assert says in f"{problem.what} {problem.why} {problem.fix}"


def test_a_factory_that_fails_names_the_users_line(file: Path) -> None:
    problem = problem_of(f"{file}:fails")
    assert problem.where.endswith("model.py:9")
    assert "ZeroDivisionError" in problem.why


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import no_such_package_at_all", 1),
        ("x = 1\nraise RuntimeError('no')", 2),
        ("def broken(:\n  pass", 1),
        ("import sys\nsys.exit(3)", 2),
    ],
)
def test_a_file_that_does_not_import(tmp_path: Path, source: str, line: int) -> None:
    (tmp_path / "broken.py").write_text(source)
    problem = problem_of(f"{tmp_path / 'broken.py'}:build")
    assert problem.id == "export/target-import"
    assert problem.where.endswith(f"broken.py:{line}")


def test_files_beside_the_target_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "beside_the_target.py").write_text("SIZE = 3")
    (tmp_path / "user.py").write_text(
        "import torch\nfrom beside_the_target import SIZE\ndef build(): return torch.nn.Linear(SIZE, 1)"
    )
    assert factory.load(f"{tmp_path / 'user.py'}:build").module.in_features == 3


def test_a_package_target() -> None:
    assert factory.load("torch.nn:ReLU").given is False
    assert problem_of("no.such.package:build").id == "export/target-import"


@pytest.mark.parametrize("target", ["", "model.py", ":build", "model.py:", "model.py:not-a-name"])
def test_what_is_no_target(target: str) -> None:
    assert problem_of(target).id == "export/target-syntax"


def test_a_file_of_a_package_may_import_its_neighbours(tmp_path: Path) -> None:
    package = tmp_path / "of_a_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "net.py").write_text("import torch\nmade = torch.nn.ReLU()\n")
    (package / "target.py").write_text("from .net import made\ndef build(): return made\n")
    assert factory.is_module(factory.load(f"{package}/target.py:build").module)


def test_a_file_changed_within_a_second_is_read_again(tmp_path: Path) -> None:
    """Python's bytecode cache takes a file of the same second and size for the same file."""
    file = tmp_path / "net.py"
    for width in (2, 3):
        file.write_text(f"import torch\n\n\ndef build():\n    return torch.nn.Linear({width}, 2)\n")
        os.utime(file, (1e9, 1e9))
        assert factory.load(f"{file}:build").module.in_features == width
