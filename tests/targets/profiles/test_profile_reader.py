"""Files with mistakes: the problem says where, and its fix works."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.targets.profiles.mistakes import EXAMPLES
from onnxsmith.targets.profiles.profile_format import Operators, Profile
from onnxsmith.targets.profiles.profile_reader import built_in, named, parsed, read
from onnxsmith.targets.profiles.value_limit import Limit

HEAD = 'title = "Board"\nunlisted = "refused"\n'
RELU = '[[operators]]\nnames = ["Relu"]\n'

MISTAKES = [
    # text, id, where, part of the fix, (what to replace, by what) as the fix says
    (HEAD + "max_ranks = 4", "profile/unknown-key", "board.toml, max_ranks", "write max_rank instead of max_ranks",
     ("max_ranks", "max_rank")),
    (HEAD + RELU + 'dtype = ["int8"]', "profile/unknown-key", "board.toml, operators 1 (Relu), dtype",
     "write dtypes instead of dtype", ("dtype =", "dtypes =")),
    (HEAD + RELU + "max_rank = 4", "profile/unknown-key", "board.toml, operators 1 (Relu), max_rank",
     "move max_rank above the first [[operators]]", (RELU + "max_rank = 4", "max_rank = 4\n" + RELU)),
    (HEAD + 'id = "b"', "profile/unknown-key", "board.toml, id", "remove id", ('id = "b"', "")),
    (HEAD + '[[operators]]\nnames = ["relu"]', "profile/unknown-name", "board.toml, operators 1 (relu)",
     'write "Relu"', ('"relu"', '"Relu"')),
    (HEAD + '[[operators]]\nnames = ["Relu", "Convolution"]', "profile/unknown-name",
     "board.toml, operators 1 (Convolution)", 'write "Conv', ('"Convolution"', '"Conv"')),
    (HEAD + 'refused = ["Gather", "Gatherr"]', "profile/unknown-name", "board.toml, refused", 'write "Gather"',
     (', "Gatherr"', "")),
    (HEAD + RELU + 'constant = ["Z"]', "profile/unknown-name", "board.toml, operators 1 (Relu), constant", "remove Z",
     ('"Z"', "")),
    (HEAD + '[[operators]]\nnames = ["Gather"]\nranks = { indice = 1 }', "profile/unknown-name",
     "board.toml, operators 1 (Gather), ranks", "write indices instead of indice", ("indice ", "indices ")),
    (HEAD + '[[operators]]\nnames = ["Conv"]\nattributes = { groups = 1 }', "profile/unknown-name",
     "board.toml, operators 1 (Conv), attributes", "write group instead of groups", ("groups", "group")),
    (HEAD + '[[operators]]\nnames = ["com.microsoft::Gelu"]\nconstant = ["X"]', "profile/unknown-name",
     "board.toml, operators 1 (com.microsoft::Gelu), constant", "remove X", ('"X"', "")),
    (HEAD + RELU + 'dtypes = ["flaot32"]', "profile/unknown-name", "board.toml, operators 1 (Relu), dtypes",
     "write 'float32'", ("flaot32", "float32")),
    (HEAD + 'dtypes = ["int9"]', "profile/unknown-name", "board.toml, dtypes", "write 'int", ("int9", "int8")),
    (HEAD + '[[rules]]\nuse = "no-zero-sized"', "profile/unknown-name", "board.toml, rules 1",
     'write use = "no-zero-size"', ("no-zero-sized", "no-zero-size")),
    (HEAD + "[[rules]]\nmost = 3", "profile/unknown-name", "board.toml, rules 1", 'write use = "',
     ("most = 3", 'use = "equal-branch-shapes"')),
    (HEAD + '[[rules]]\nuse = "suppression-boxes"\nmots = 3', "profile/unknown-key", "board.toml, rules 1",
     "write most instead of mots", ("mots", "most")),
    (HEAD + '[[rules]]\nuse = "suppression-boxes"\nmost = "many"', "profile/invalid", "board.toml, rules 1, most",
     "correct most", ('"many"', "3")),
    (HEAD + 'rules = "no-zero-size"', "profile/invalid", "board.toml, rules", 'use = "strong-typing"',
     ('rules = "no-zero-size"', '[[rules]]\nuse = "strong-typing"')),
    ('unlisted = "refused"', "profile/invalid", "board.toml, title", 'add title = "My board"',
     ("unlisted", 'title = "My board"\nunlisted')),
    ('title = "Board"', "profile/invalid", "board.toml, unlisted", 'add unlisted = "refused"',
     ('"Board"', '"Board"\nunlisted = "refused"')),
    ('title = "Board"\nunlisted = "no"', "profile/invalid", "board.toml, unlisted", "write unlisted",
     ('"no"', '"unknown"')),
    (HEAD + "[[operators]]\nrank = 4", "profile/invalid", "board.toml, operators 1, names", 'add names = ["Conv"]',
     ("rank", 'names = ["Conv"]\nrank')),
    (HEAD + RELU + RELU, "profile/invalid", "board.toml, operators 2 (Relu)", "remove Relu from one",
     (RELU + RELU, RELU)),
    (HEAD + 'refused = ["Relu"]\n' + RELU, "profile/invalid", "board.toml, operators 1 (Relu)", "remove Relu from one",
     ('refused = ["Relu"]', "")),
    (HEAD + "opset = { from = 9 }", "profile/invalid", "board.toml, opset", "{ min = 1, max = 2 }", ("from", "min")),
    (HEAD + "opset = { min = 9, max = 8 }", "profile/invalid", "board.toml, opset", "min is above max",
     ("max = 8", "max = 10")),
    (HEAD + RELU + "rank = []", "profile/invalid", "board.toml, operators 1 (Relu), rank", "[1, 2]", ("[]", "[1, 2]")),
    (HEAD + 'max_rank = "4"', "profile/invalid", "board.toml, max_rank", "write max_rank = 4", ('"4"', "4")),
    (HEAD + RELU + 'constant = "X"', "profile/invalid", "board.toml, operators 1 (Relu), constant",
     'write constant = ["X"]', ('"X"', '["X"]')),
    (HEAD + RELU + 'static = "X"', "profile/invalid", "board.toml, operators 1 (Relu), static", 'write static = ["X"]',
     ('"X"', '["X"]')),
    (HEAD + RELU + "dims = { X = 1 }", "profile/invalid", "board.toml, operators 1 (Relu), dims.X",
     "write dims = { X = { 0 = 1 } }", ("dims = { X = 1 }", "dims = { X = { 0 = 1 } }")),
    (HEAD + "[operators]\nnames = ['Relu']", "profile/invalid", "board.toml, operators", "write [[operators]]",
     ("[operators]", "[[operators]]")),
    (HEAD + 'opset = "17"', "profile/invalid", "board.toml, opset", "{ min = 1, max = 2 }", ('"17"', "17")),
    (HEAD + RELU + "ranks = { X = true }", "profile/invalid", "board.toml, operators 1 (Relu), ranks.X",
     "write a value", ("true", "1")),
    (HEAD + "max_dim = 0", "profile/invalid", "board.toml, max_dim", "write max_dim = 8192", ("= 0", "= 8192")),
    (HEAD + RELU + "dims = { X = { channel = 8 } }", "profile/invalid", "board.toml, operators 1 (Relu), dims.X",
     "write the number of an axis", ("channel", "1")),
    (HEAD + 'extends = "tensorrt"', "profile/unknown-name", "board.toml, extends", 'write extends = "tensorrt-1',
     ('"tensorrt"', '"tensorrt-10"')),
    ('title = Board\nunlisted = "refused"', "profile/unreadable", "board.toml", 'title = "My board"',
     ("= Board", '= "Board"')),
]  # fmt: skip


@pytest.mark.parametrize(("text", "id_", "where", "fix", "mend"), MISTAKES)
def test_a_mistake(text: str, id_: str, where: str, fix: str, mend: tuple[str, str]) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        parsed(text, "board.toml")
    found = caught.value.problem
    assert (found.id, found.where) == (id_, where)
    assert fix in found.fix
    assert isinstance(parsed(text.replace(*mend), "board.toml"), Profile)


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "board.toml"
    file.write_text(HEAD + RELU, encoding="utf-8")
    profile = read(file)
    assert (profile.id, profile.title, list(profile.listed)) == ("board", "Board", ["Relu"])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        read(tmp_path / "none.toml")
    assert caught.value.problem.id == "profile/unreadable"
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(OnnxsmithError) as caught:
        read(tmp_path / "latin.toml")
    assert caught.value.problem.id == "profile/unreadable"


def test_an_unknown_built_in_profile() -> None:
    with pytest.raises(OnnxsmithError) as caught:
        named("tensorrt10")
    assert caught.value.problem.id == "profile/unknown"
    assert caught.value.problem.fix.removeprefix("write ") in built_in()
    with pytest.raises(OnnxsmithError):
        named("../tables/qnn")


def test_a_profile_extends_a_built_in_one() -> None:
    text = (
        'extends = "tensorrt-10"\ntitle = "Orin"\nmax_rank = 4\nrefused = ["Gelu"]\n'
        '[[operators]]\nnames = ["Softmax", "Unique"]\nrank = 2\n[[rules]]\nuse = "no-zero-size"\n'
    )
    base, own = named("tensorrt-10"), parsed(text, "orin.toml", "orin")
    assert (own.id, own.title, own.unlisted, own.max_rank) == ("orin", "Orin", base.unlisted, 4)
    assert own.listed["Softmax"].rank == Limit((2,))
    assert own.listed["Sqrt"].dtypes == base.listed["Sqrt"].dtypes
    assert set(own.listed) == set(base.listed) - {"Gelu"} | {"Unique"}
    assert set(own.refused) == set(base.refused) - {"Unique"} | {"Gelu"}
    assert len(own.rules) == len(base.rules) + 1


@pytest.mark.parametrize("key", ['operators = "Relu"', 'refused = "Relu"', 'rules = "x"', "[[operators]]\nnames = 3"])
def test_a_mistake_in_a_profile_that_extends_another_is_found(key: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        parsed(f'extends = "qnn"\ntitle = "Mine"\n{key}\n', "mine.toml")
    assert caught.value.problem.id == "profile/invalid"


@pytest.mark.parametrize(
    ("raw", "allowed", "other", "text"),
    [
        (3, [3, [3, 3]], [4, [3, 4]], "3"),
        (["a", "b"], ["a"], ["c"], 'one of "a", "b"'),
        ({"min": 1}, [1, 2], [0], "at least 1"),
        ({"max": 1}, [1, 0.5], [2], "at most 1"),
        ({"min": 1, "max": 2}, [1, 2, [1, 2]], [0, 3, "1"], "from 1 to 2"),
        (False, [False, 0], [True, 1], "false"),
    ],
)
def test_limits(raw: object, allowed: list[object], other: list[object], text: str) -> None:
    limit = Limit.read(raw)
    assert all(limit.allows(one) for one in allowed)
    assert not any(limit.allows(one) for one in other)
    assert str(limit) == text


def test_every_key_has_an_example_that_is_valid() -> None:
    assert set(EXAMPLES) == (set(Profile.model_fields) | set(Operators.model_fields)) - {"id", "rules"}
    for key, example in EXAMPLES.items():
        rest = {name: text for name, text in EXAMPLES.items() if name in ("title", "unlisted") and name != key}
        table = "[[operators]]\nnames = ['Conv']\n" if key in Operators.model_fields and key != "names" else ""
        parsed("\n".join([*rest.values(), "" if key != "names" else "[[operators]]", table + example]), "board.toml")
