"""The wheel, installed and used outside the checkout, with every extra and without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

ROOT = Path(__file__).parent.parent
MODEL = """
<ir_version: 10, opset_import: ["": 20]>
g (float[batch,3] x) => (float[batch,3] y) { a = Identity(x)\n y = Tanh(a) }
"""

Installed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", str(wheel)], check=True, capture_output=True, text=True)
    return folder


@pytest.fixture(scope="module")
def installed(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Runs a command of the environment; `without` names packages that it does not have."""

    def run(folder: Path, *args: str, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        others = folder.parent / f"packages without {' and '.join(without) or 'nothing'}"
        if not others.exists():
            _link_packages(others, without)
        return subprocess.run(
            [str(environment / "bin" / args[0]), *args[1:]],
            cwd=folder,
            env={"PATH": os.defpath, "HOME": str(folder.parent), "PYTHONPATH": str(others)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


def _link_packages(folder: Path, without: tuple[str, ...]) -> None:
    """Links to everything that is installed here, but this project and `without`."""
    folder.mkdir()
    for key in ("purelib", "platlib"):
        for item in Path(sysconfig.get_path(key)).iterdir():
            name = item.name.lower().lstrip("_")
            left_out = name.startswith(("onnxsmith", "editable_impl_onnxsmith", *without)) or item.suffix == ".pth"
            if not left_out and not (folder / item.name).exists():
                (folder / item.name).symlink_to(item)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "elsewhere"
    inner.mkdir()
    save(from_text(MODEL), inner / "in.onnx")
    return inner


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        wanted = {line.removeprefix("src/") for line in listed.stdout.splitlines() if (ROOT / line).exists()}
        assert {name for name in names if ".dist-info/" not in name} == wanted
    assert {name.split("/")[0].split("-")[0] for name in names} == {"onnxsmith"}
    assert "onnxsmith/py.typed" in names
    assert "onnxsmith/cli/render/report.html.jinja" in names
    assert any(name.startswith("onnxsmith/viewer/pages/") and name.endswith(".md") for name in names)
    assert "onnxsmith/SKILL.md" in names
    assert any(name.endswith("/LICENSE") for name in names)


def test_it_is_the_wheel_that_runs(installed: Installed, folder: Path, environment: Path) -> None:
    found = installed(folder, "python", "-c", "import onnxsmith; print(onnxsmith.__file__)")
    assert Path(found.stdout.strip()).is_relative_to(environment)


def test_help_doctor_and_explain(installed: Installed, folder: Path) -> None:
    for args in (["--help"], ["doctor"], ["explain", "model/truncated"], ["explain", "algebra/identity"]):
        found = installed(folder, "onnxsmith", *args)
        assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize(
    ("without", "runtime"), [((), "onnxruntime"), (("onnxruntime",), "reference"), (("torch",), "onnxruntime")]
)
def test_simplify_runs_on_what_is_there(
    installed: Installed, folder: Path, without: tuple[str, ...], runtime: str
) -> None:
    found = installed(folder, "onnxsmith", "simplify", "in.onnx", "-o", "out.onnx", "--json", without=without)
    assert found.returncode == 0, found.stderr
    (verification,) = (part for part in json.loads(found.stdout)["parts"] if part["kind"] == "verification")
    assert verification["equal"]
    assert f" on {runtime} " in verification["candidate"]
    assert sorted(path.name for path in folder.iterdir()) == ["in.onnx", "out.onnx"]
    again = installed(folder, "onnxsmith", "compare", "in.onnx", "out.onnx", without=without)
    assert again.returncode == 0, again.stderr


def test_a_runtime_that_is_not_there_is_a_problem(installed: Installed, folder: Path) -> None:
    args = ("run", "in.onnx", "--random", "--runtime", "onnxruntime", "--json")
    found = installed(folder, "onnxsmith", *args, without=("onnxruntime",))
    assert found.returncode == 2, found.stderr
    assert [problem["id"] for problem in json.loads(found.stdout)["problems"]] == ["runtime/not-installed"]


@pytest.mark.parametrize(
    "args", [("export", "net.py:build", "-o", "net.onnx"), ("compare", "net.py:build", "in.onnx")], ids=" ".join
)
def test_torch_that_is_not_there_is_a_problem(installed: Installed, folder: Path, args: tuple[str, ...]) -> None:
    (folder / "net.py").write_text("import torch\n\ndef build():\n    return torch.nn.Tanh(), (torch.ones(2, 3),)\n")
    found = installed(folder, "onnxsmith", *args, "--json", without=("torch", "onnxruntime"))
    assert "Traceback" not in found.stderr
    assert found.returncode == 2
    (problem,) = json.loads(found.stdout)["problems"]
    assert problem["id"] in ("export/no-torch", "export/target-import", "runtime/not-installed")
    assert "torch" in problem["what"] + problem["why"]
    assert "pip install" in problem["fix"]


def test_doctor_names_what_is_missing(installed: Installed, folder: Path) -> None:
    found = installed(folder, "onnxsmith", "doctor", without=("torch", "onnxruntime"))
    assert found.returncode == 0, found.stderr
    assert "onnxsmith[torch]" in found.stdout
    assert "onnxsmith[cpu]" in found.stdout
