"""`tools/mutate.py`: which mutants there are, and that a test that notices is heard."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "mutate.py"


@pytest.fixture(scope="module")
def mutate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutate", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module
    spec.loader.exec_module(module)
    return module


SOURCE = """
def inside(x: int, least: int = 0) -> bool:
    \"\"\"A docstring with 1 number.\"\"\"
    if x < least and not x == 7:
        raise ValueError
    note(x)
    return x > 1
"""


def test_each_kind_of_change(mutate: ModuleType) -> None:
    found = {(one.before, one.after) for one in mutate.mutants(Path("m.py"), SOURCE)}
    assert found == {
        ("x < least", "x <= least"),
        ("x < least and (not x == 7)", "x < least or not x == 7"),
        ("x < least and (not x == 7)", "not (x < least and (not x == 7))"),
        ("not x == 7", "x == 7"),
        ("x == 7", "x != 7"),
        ("7", "8"),
        ("0", "1"),
        ("1", "2"),
        ("x > 1", "x >= 1"),
        ("raise ValueError", "pass"),
        ("note(x)", "pass"),
        ("return x > 1", "return None"),
    }
    assert all(compile(one.source, "m.py", "exec") for one in mutate.mutants(Path("m.py"), SOURCE))


def test_a_mutant_is_named_by_its_function_and_its_line(mutate: ModuleType) -> None:
    for indent in ("", "# a line more\n"):
        keys = {one.after: one.key for one in mutate.mutants(Path("m.py"), indent + SOURCE)}
        assert keys["x <= least"] == ("m.py", "inside", "if x < least and not x == 7:", "x < least", "x <= least")
        assert keys["8"][2:] == ("if x < least and not x == 7:", "7", "8")
    (outside,) = mutate.mutants(Path("m.py"), "LIMIT = 3")
    assert outside.key == ("m.py", "", "LIMIT = 3", "3", "4")


def test_every_equivalent_mutant_exists(mutate: ModuleType) -> None:
    listed = mutate.equivalent()
    found = {
        one.key
        for file in sorted({Path(key[0]) for key in listed})
        for one in mutate.mutants(file, (mutate.ROOT / file).read_text(encoding="utf-8"))
    }
    assert listed <= found, listed - found


def test_every_area_has_its_files(mutate: ModuleType) -> None:
    for area in mutate.AREAS.values():
        root = mutate.ROOT
        assert all(list((root / "src/onnxsmith").glob(pattern)) for pattern in area.sources)
        assert all((root / test).exists() for test in area.tests if "{name}" not in test)
