"""The check for opened paths finds those that may be a user's, and finds none outside of the modules for them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "opened_paths.py"
FOLDERS = "from onnxsmith.base import folders, user_files\n"


def looked(*where: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), *map(str, where)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def f(path): open(path)", "open"),
        ("def f(path): path.open()", ".open"),
        ("def f(path): path.open('rb')", ".open"),
        ("def f(path, mode): path.open(mode=mode)", ".open"),
        ("from pathlib import Path\ndef f(path: Path | None): path and path.read_text()", ".read_text"),
        ("def f(path): return path.read_bytes()", ".read_bytes"),
        ("def f(path): path.write_text('')", ".write_text"),
        ("def f(path): path.write_bytes(b'')", ".write_bytes"),
        ("def f(path): path.touch()", ".touch"),
        ("def f(path): path.symlink_to('a')", ".symlink_to"),
        ("def f(path, to): path.rename(to)", ".rename"),
        ("def f(path, to): path.replace(to)", ".replace"),
        ("import numpy as np\ndef f(path): np.load(path)", "numpy.load"),
        ("import numpy as np\ndef f(path): np.savez(file=path)", "numpy.savez"),
        ("import numpy as np\ndef f(path): np.memmap(path)", "numpy.memmap"),
        ("import onnx\ndef f(path, model): onnx.save(model, path)", "onnx.save"),
        ("import torch\ndef f(path): torch.load(path)", "torch.load"),
        ("from PIL import Image\ndef f(path): Image.open(path)", "PIL.Image.open"),
        ("import zipfile\ndef f(path): zipfile.ZipFile(path)", "zipfile.ZipFile"),
        ("import tarfile\ndef f(path): tarfile.open(path)", "tarfile.open"),
        ("import sqlite3\ndef f(path): sqlite3.connect(path)", "sqlite3.connect"),
        ("import os\ndef f(path): os.open(path, os.O_RDONLY)", "os.open"),
        ("import os\ndef f(path): os.replace(path, path)", "os.replace"),
        ("from shutil import copyfile\ndef f(path): copyfile(path, path)", "shutil.copyfile"),
        ("from pathlib import Path\ndef f(paths): return map(Path.read_text, paths)", "pathlib.Path.read_text"),
        (f"{FOLDERS}import shutil\ndef f(path):\n with folders.temporary() as a: shutil.copy(path, a)", "shutil.copy"),
        (f"{FOLDERS}def f(path):\n with folders.temporary() as a: pass\n a = path\n a.touch()", ".touch"),
        (f"{FOLDERS}def f(path): folders.OwnPath(path).touch()", ".touch"),
        (f"{FOLDERS}def f(path):\n with folders.beside(path) as a: (a.parent / 'b').touch()", ".touch"),
    ],
)
def test_it_finds_a_path_of_the_user(source: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(source)
    found = looked(tmp_path)
    assert found.returncode == 1
    assert f": {name}\n" in found.stdout


@pytest.mark.parametrize(
    "source",
    [
        "def f(path):\n with folders.temporary() as a: (a / 'b').write_text('')",
        "def f(path):\n with folders.replacing(path) as a, a.open('wb') as file: pass",
        "def f(path, stack):\n a = stack.enter_context(folders.aside(path))\n (a / 'b').touch()",
        "def f(a: folders.OwnPath): (a / 'b').with_suffix('.c').write_bytes(b'')",
        "def f(a: folders.OwnPath, b): (folders.OwnPath(a / b)).touch()",
        "def f(a: folders.OwnPath): return [one.read_text() for one in sorted(a.iterdir())]",
        "import zipfile\ndef f(path):\n with user_files.opened(path) as a, zipfile.ZipFile(a) as b: b.open('c')",
        "from importlib.resources import files\nfiles('onnxsmith').joinpath('a').read_text()",
        "from pathlib import Path\n(Path(__file__).parent / 'a').read_text()",
        "from pathlib import Path\nPROC = Path('/proc')\n(PROC / 'stat').read_text()",
        "import os\nopen(os.devnull)",
        "def f(text): return text.replace('a', 'b')",
        "class Kept:\n a: folders.OwnPath\n def f(self): self.a.touch()",
        "def _g():\n with folders.temporary() as a: return a / 'b'\ndef f(): _g().touch()",
        "def f(path): return user_files.read_bytes(path)",
    ],
)
def test_it_leaves_its_own_paths(source: str, tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(FOLDERS + source)
    found = looked(tmp_path)
    assert found.returncode == 0, found.stdout


def test_a_listed_module_may_open_paths(tmp_path: Path) -> None:
    package, table = tmp_path / "package", tmp_path / "table.toml"
    package.mkdir()
    (package / "made.py").write_text("def f(path): open(path)")
    table.write_text('[doors]\n"made.py" = "Reads the file."\n')
    assert looked(package, table).returncode == 0
    table.write_text('[doors]\n"made.py" = ""\n')
    assert looked(package, table).returncode == 1  # without a reason


def test_an_entry_that_is_not_needed_is_found(tmp_path: Path) -> None:
    package, table = tmp_path / "package", tmp_path / "table.toml"
    package.mkdir()
    (package / "made.py").write_text("")
    table.write_text('[doors]\n"made.py" = "Reads the file."\n"gone.py" = "Reads the file."\n')
    found = looked(package, table)
    assert found.returncode == 1
    assert "made.py: opens no path" in found.stdout
    assert "gone.py: opens no path" in found.stdout


def test_there_is_none() -> None:
    found = looked()
    assert found.returncode == 0, found.stdout


def test_a_planted_one_is_found(tmp_path: Path) -> None:
    package = tmp_path / "onnxsmith"
    ignored = shutil.ignore_patterns("__pycache__", "*.js", "*.html")
    shutil.copytree(ROOT / "src" / "onnxsmith" / "viewer", package / "viewer", ignore=ignored)
    view = package / "viewer" / "view.py"
    view.write_text(f"{view.read_text()}\n\ndef planted(path: Path) -> bytes:\n    return path.read_bytes()\n")
    found = looked(package)
    assert found.returncode == 1
    assert found.stdout.count(": .") == 1
    assert "view.py" in found.stdout
