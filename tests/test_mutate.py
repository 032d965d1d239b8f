"""`tools/mutate`: which mutants there are, which case comes to which, and that a test that notices is heard."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parent.parent / "tools" / "mutate"


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def mutate() -> ModuleType:
    return tool("mutants")


SOURCE = """
def inside(x: int, least: int = 0) -> bool:
    \"\"\"A docstring with 1 number.\"\"\"
    if x < least and not x == 7:
        raise ValueError
    note(x)
    return x > 1
"""


def test_each_kind_of_change(mutate: ModuleType) -> None:
    found = {(one.before, one.after) for one in mutate.mutants("m.py", SOURCE)}
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
    assert all(compile(one.source, "m.py", "exec") for one in mutate.mutants("m.py", SOURCE))


def test_a_mutant_is_named_by_its_function_and_its_line(mutate: ModuleType) -> None:
    for indent in ("", "# a line more\n"):
        keys = {one.after: one.key for one in mutate.mutants("m.py", indent + SOURCE)}
        assert keys["x <= least"] == ("m.py", "inside", "if x < least and not x == 7:", "x < least", "x <= least")
        assert keys["8"][2:] == ("if x < least and not x == 7:", "7", "8")
    (outside,) = mutate.mutants("m.py", "LIMIT = 3")
    assert outside.key == ("m.py", "", "LIMIT = 3", "3", "4")


def test_every_equivalent_mutant_exists(mutate: ModuleType) -> None:
    listed = mutate.equivalent()
    found = set()
    for file in sorted({key[0] for key in listed}):
        source = (mutate.ROOT / file).read_text(encoding="utf-8")
        lines = {key[2] for key in listed if key[0] == file}
        made = [mutate.mutant(file, source, place) for place, line in mutate.places(source).items() if line in lines]
        found |= {one.key for one in made if one is not None}
    assert listed <= found, listed - found


def test_every_area_has_its_files(mutate: ModuleType) -> None:
    assert all(list(mutate.SOURCE.glob(pattern)) for pattern in mutate.AREAS.values())


def test_a_sample_has_so_many_of_each_area(mutate: ModuleType) -> None:
    found = mutate.sampled({"verification": 3, "files": 2}, seed=1)
    assert [one.file.split("/")[2] for one in found] == ["verification"] * 3 + ["graph"] * 2
    assert found == mutate.sampled({"verification": 3, "files": 2}, seed=1)
    assert found != mutate.sampled({"verification": 3, "files": 2}, seed=2)


REACHED = """
from __future__ import annotations

LIMIT = 3

def shade(x: int) -> str:
    \"\"\"Names a number.\"\"\"
    match x:
        case 1:
            return "one"
    if x > LIMIT:
        return "many"
    elif x < 0:
        raise ValueError
    return [n + 1 for n in range(x)] and "few"
"""


def test_a_marked_file_computes_the_same_and_tells_what_was_reached(
    mutate: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    places = mutate.places(REACHED)
    texts = {place: one.before for place in places if (one := mutate.mutant("m.py", REACHED, place)) is not None}
    marked = mutate.marked(REACHED, {place: [place] for place in places})
    module = compile(marked, "m.py", "exec")
    reached = tool("onnxsmith_reached")
    space: dict[str, object] = {"__file__": "m.py"}
    exec(module, space)
    shade = space["shade"]
    assert callable(shade)
    found: dict[int, set[str]] = {}
    for x, name in ((1, "one"), (2, "few"), (9, "many")):
        reached.seen.clear()
        assert shade(x) == name
        assert "m.py" in reached.seen
        found[x] = {texts[place] for place in reached.seen if place in texts}
    assert "raise ValueError" not in found[1] | found[2] | found[9]
    with pytest.raises(ValueError):  # noqa: PT011
        shade(-1)
    assert "raise ValueError" in {texts[place] for place in reached.seen if place in texts}
    assert "x > LIMIT" in found[2] & found[9]
    assert "x > LIMIT" not in found[1]
    assert "x < 0" in found[2] - found[9]
    assert "return 'many'" in found[9] - found[2]
    assert "n + 1" in found[2] - found[9]
