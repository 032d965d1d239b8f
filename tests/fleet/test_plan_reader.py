"""Reading a plan: what it may say, and that each mistake names its line and the nearest name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from onnxsmith.fleet import plan_file, plan_reader
from onnxsmith.fleet.plan import Environment, Limits, Plan
from onnxsmith.fleet.steps import Mistake, Step
from tests.conftest import Refused
from tests.fleets import cells_of, models, plan

FIRST = 'models = ["a.onnx"]\nsteps = ["simplify", "check"]\n'


def read(folder: Path, text: str) -> Plan:
    return plan_reader.read(plan(folder, text))


def test_a_small_plan(tmp_path: Path) -> None:
    read_plan = read(tmp_path, FIRST)
    assert read_plan.name == "p"
    assert read_plan.folder == tmp_path
    assert [(entry.source, entry.where) for entry in read_plan.models] == [
        ("a.onnx", f"{tmp_path / 'p.toml'}, line 1"),
    ]
    assert read_plan.settings == {"default": (Step("simplify"), Step("check"))}
    assert read_plan.environments == (Environment(),)
    assert (read_plan.limits, read_plan.workers, read_plan.keep, read_plan.store) == (Limits(1800, 0), 0, "", "")
    assert read_plan.text == FIRST


def test_a_whole_plan(tmp_path: Path) -> None:
    read_plan = read(
        tmp_path,
        """name = "nightly"
models = [
  "models/*.onnx",
  { source = "nets.py:build", name = "net", settings = ["new"], depends = ["w.pt"], options.export = "--dim n=4" },
]
exclude = "models/old*"
steps = ["export", "simplify", "baseline"]
workers = 3
time_limit = 90.5
memory_limit = "1.5GiB"
keep = "out"
store = "rows/"

[options]
simplify = "--seed 1"
"baseline" = ["--no-time"]

[settings.old]
[settings."with a space"]
steps = ["opset", "compare"]
opset = "--to 23 --note 'two words'"
[settings.new]
simplify = "--thorough"

[environments]
newest = { requirements = ["onnxruntime==1.32.0"], python = "3.12" }
here = {}
""",
    )
    assert read_plan.name == "nightly"
    assert [(entry.source, entry.name) for entry in read_plan.models] == [
        ("models/*.onnx", ""),
        ("nets.py:build", "net"),
        ("!models/old*", ""),
    ]
    net = read_plan.models[1]
    assert (net.settings, net.depends, net.options) == (("new",), ("w.pt",), {"export": ("--dim", "n=4")})
    common = (Step("export"), Step("simplify", ("--seed", "1")), Step("baseline check", ("--no-time",)))
    assert read_plan.settings == {
        "old": common,
        "with a space": (Step("opset", ("--to", "23", "--note", "two words")), Step("compare")),
        "new": (common[0], Step("simplify", ("--seed", "1", "--thorough")), common[2]),
    }
    assert read_plan.environments == (Environment("newest", "3.12", ("onnxruntime==1.32.0",)), Environment("here"))
    assert read_plan.limits == Limits(90.5, 3 * 2**29)
    assert (read_plan.workers, read_plan.keep, read_plan.store) == (3, "out", "rows/")


@pytest.mark.parametrize(
    "text",
    [
        FIRST.replace("\n", "\r\n"),
        "\ufeff" + FIRST,
        'models = "a.onnx"\nsteps = ["simplify", "check"]\n',
        'models = { source = "a.onnx" }\nsteps = ["simplify", "check"]\n',
        '"models" = ["a.onnx"]\n\'steps\' = ["simplify", "check"]\n',
        'steps = ["simplify", "check"]\n[[models]]\nsource = "a.onnx"\n',
        'models = ["a.onnx"]\nsettings.default.steps = ["simplify", "check"]\n',
        'models = ["a.onnx"]\nsettings = { default = { steps = ["simplify", "check"] } }\n',
        "# models = 3\n" + FIRST + "# name = 3",
    ],
    ids=["CRLF", "BOM", "a text", "a table", "quoted keys", "an array of tables", "dotted", "inline", "comments"],
)
def test_other_ways_to_write_it(tmp_path: Path, text: str) -> None:
    read_plan = read(tmp_path, text)
    assert [entry.source for entry in read_plan.models] == ["a.onnx"]
    assert read_plan.settings == {"default": (Step("simplify"), Step("check"))}


@pytest.mark.parametrize(
    ("text", "size"),
    [('"4GB"', 4 * 10**9), ('"512 MiB"', 2**29), ('"3k"', 3000), ("1000", 1000), ('"7"', 7), ('"0B"', 0)],
)
def test_sizes(tmp_path: Path, text: str, size: int) -> None:
    assert read(tmp_path, f"{FIRST}memory_limit = {text}").limits.bytes == size


MISTAKES = {
    "no models": ("steps = ['check']", 0, "the plan names no models", 'models = ["models/*.onnx"]'),
    "models are empty": ("models = []\nsteps = ['check']", 1, "the plan names no models", "models"),
    "a model is a number": ("models = [3]\nsteps = ['check']", 1, "a model is a text or a table", "source"),
    "a model without a source": (
        "steps = ['check']\nmodels = [{ name = 'a' }]",
        2,
        "a model is a text or a table with source",
        "source",
    ),
    "an unknown key": (
        f"# time_limits\n{FIRST}time_limits = 3",
        4,
        "no key 'time_limits'",
        "write time_limit in place",
    ),
    "a long key": (f"{FIRST}{'k' * 5_000} = 3", 3, "no key 'kkk", ""),
    "an unknown key of a model": (
        "steps = ['check']\nmodels = [\n'a.onnx',\n{ source = 'b.onnx', dependson = [] },\n]",
        4,
        "no key 'dependson'",
        "depends",
    ),
    "the name of a model": (
        "steps = ['check']\nname = 'n'\n[[models]]\nsource = 'b.onnx'\nname = 3",
        5,
        "name is a text, not 3",
        "",
    ),
    "an unknown key of an environment": (
        f"{FIRST}[environments.a]\npython = '3.12'\n[environments.b]\nrequirement = []",
        6,
        "no key 'requirement'",
        "write requirements in place",
    ),
    "an environment is a text": (f"{FIRST}environments.a = '3.12'", 3, "environments are tables", "[environments."),
    "a verb": ("models = ['a']\nsteps = ['simplify',\n'chek']", 3, "'chek' cannot be a step", "write check in place"),
    "a verb of one model": ("models = ['a']\nsteps = ['bisect']", 2, "'bisect' cannot be a step", "there are: "),
    "a verb in options": (
        f"{FIRST}[options]\nsimplfy = ''",
        4,
        "'simplfy' cannot be a step",
        "write simplify in place",
    ),
    "options of a verb that is no step": (
        f"{FIRST}[settings.a]\ncheck = '--target openvino'\n[settings.b]\ncheck = ''\nbench = ''",
        7,
        "'bench' has options, but is not a step",
        "",
    ),
    "options are a number": (f"{FIRST}[options]\ncheck = 3", 4, "the options of check are 3", "check = "),
    "options in an open quotation mark": (
        f'{FIRST}[options]\ncheck = "\'a"',
        4,
        "the options of check have a quotation mark that is not closed",
        "check = ",
    ),
    "options that end with a backslash": (
        f"{FIRST}[options]\ncheck = '\\'",
        4,
        "the options of check end with a backslash",
        "leave the backslash out",
    ),
    "options of all settings for a verb that is no step": (
        f"{FIRST}[options]\ncheck = ''\nchec = ''\n".replace("chec ", "compare "),
        5,
        "'compare' has options, but is not a step",
        "or add compare to the steps",
    ),
    "options of a model for a verb that is no step of its settings": (
        f"{FIRST}[settings.a]\n[settings.b]\nsteps = ['strip']\n".replace(
            '"a.onnx"', "{ source = 'b', settings = ['b'], options = { check = '' } }"
        ),
        1,
        "'check' has options, but is not a step",
        "",
    ),
    "the second of two": (
        f"{FIRST}[settings.a]\ncheck = '--seed 1'\n[settings.b]\ncheck = 3",
        6,
        "the options of check are 3",
        "",
    ),
    "options of a model": (
        "steps = ['check']\nmodels = [\n{ source = 'a' },\n{ source = 'b', options = { check = 1 } } ]",
        4,
        "the options of check are 1",
        "",
    ),
    "options are a text": (f"options = 3\n{FIRST}", 1, "options are a table", "[options]"),
    "steps are a number": ("models = ['a']\nsteps = 3", 2, "steps is a list of texts", "steps = "),
    "a setting is a text": (f"{FIRST}[settings]\na = 'b'", 3, "settings are tables", "[settings."),
    "no settings": (f"{FIRST}[settings]", 3, "settings are tables", "[settings."),
    "no steps": ("models = ['a']", 0, "'default' has no steps", "add steps"),
    "a setting without steps": ("models = ['a']\n[settings.fast]", 2, "'fast' has no steps", "add steps"),
    "export is not first": (
        "models = ['a']\n[settings.x]\nsteps = ['simplify', 'export']",
        2,
        "export comes after",
        "f",
    ),
    "nothing to compare": (
        "models = ['a']\n[settings.x]\nsteps = ['compare']",
        2,
        "has nothing to compare",
        "simplify",
    ),
    "a name that is a number": (f"{FIRST}name = 3", 3, "name is a text, not 3", 'name = "3"'),
    "a negative limit": (f"{FIRST}time_limit = -1", 3, "time_limit is a number of seconds", "time_limit = 1800"),
    "a limit that is no number": (f"{FIRST}time_limit = nan", 3, "time_limit is a number of seconds", ""),
    "a limit without end": (f"{FIRST}time_limit = inf", 3, "time_limit is a number of seconds", ""),
    "half a worker": (f"{FIRST}workers = 1.5", 3, "workers is a whole number", "workers = 2"),
    "a yes for workers": (f"{FIRST}workers = true", 3, "workers is a whole number", ""),
    "a size without a unit that is known": (f"{FIRST}memory_limit = '4 apples'", 3, "a size in bytes", "4GB"),
    "a size that is a yes": (f"{FIRST}memory_limit = true", 3, "a size in bytes", "4GB"),
}


@pytest.mark.parametrize("keep", ["kept", "kept/inner"])
def test_files_are_not_kept_in_a_file(tmp_path: Path, refused: Refused, keep: str) -> None:
    (tmp_path / "kept").write_text("")
    with refused("fleet/plan") as refusal:
        read(tmp_path, f"{FIRST}keep = '{keep}'")
    assert refusal.problem.where.endswith(", line 3")
    assert refusal.problem.what == f"keep names a folder, but {tmp_path / 'kept'} is a file"


def test_a_folder_to_keep_files_in_that_is_no_path(tmp_path: Path) -> None:
    assert read(tmp_path, f"{FIRST}keep = '{'x' * 100_000}'").keep == "x" * 100_000


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_names_its_line(tmp_path: Path, refused: Refused, name: str) -> None:
    text, line, what, fix = MISTAKES[name]
    with refused("fleet/plan") as refusal:
        read(tmp_path, text)
    place = refusal.problem.where.partition(", column")[0]
    assert place == str(tmp_path / "p.toml") + (f", line {line}" if line else "")
    assert what in refusal.problem.what
    assert fix in refusal.problem.fix


@pytest.mark.parametrize(
    ("content", "place", "why"),
    [
        ("name = 'p'\nmodels = ['a'\n", ", line 2, column 14", "a list is not closed"),
        ("models = ['a'\nsteps = 3\n", ", line 2, column 1", "a list is not closed"),
        ("models = [a]\n", ", line 1, column 11", "a text without quotation marks"),
        ('models = ["a"]\nmodels = ["b"]\n', ", line 2, column 15", "a key appears twice"),
        ('name = "p # no"\nsteps = ["a", "b]  # c\n', ", line 2, column 15", "quotation mark at its end"),
        ('steps = ["a", "b]\n', ", line 1, column 15", "has no quotation mark at its end"),
        ("steps = ['a', 'b\"]\n", ", line 1, column 15", "has no quotation mark at its end"),
        ("name = '''a\n", ", line 1, column 12", "three quotation marks is not closed"),
        (b"name = '\xff'", "", "decode"),
        ("\0PLAN", ", line 1, column 1", "a line has to be a key with a value"),
    ],
)
def test_what_is_no_toml(tmp_path: Path, refused: Refused, content: str | bytes, place: str, why: str) -> None:
    (tmp_path / "p.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    with refused("fleet/plan-file") as refusal:
        plan_reader.read(tmp_path / "p.toml")
    assert refusal.problem.where == f"{tmp_path / 'p.toml'}{place}"
    assert why in refusal.problem.why


@pytest.mark.parametrize(
    ("text", "column"),
    [("'a", 0), ("a 'b' \"c", 6), ("a 'b\\' c", None), ('"a\\"b', 0), ('"it\'s"', None), ("", None)],
)
def test_where_a_quotation_mark_is_open(text: str, column: int | None) -> None:
    assert plan_file.open_quote(text) == column


def test_options_that_the_command_line_refuses(tmp_path: Path, refused: Refused) -> None:
    """The function that reads the options is asked for each table, and for each step as a whole."""

    def accepts(verb: str, words: Sequence[str]) -> Mistake | None:
        asked.append((verb, *words))
        if "--wrong" in words:
            return Mistake("no such option", "", "leave it out")
        return (
            Mistake("an argument is missing", "", "", is_missing=True) if verb == "opset" and len(words) < 4 else None
        )

    asked: list[tuple[str, ...]] = []
    text = "models = ['a']\nsteps = ['opset', 'compare']\n[options]\ncompare = '--seed 1'\n[settings.x]\nopset = '23'\n"
    plan_reader.read(plan(tmp_path, text), accepts)
    assert asked[0] == ("compare", "FIRST", "MODEL", "--seed", "1")
    assert asked[-2] == ("opset", "MODEL", "23", "-o", "OUT")
    wrong = {
        text.replace("'23'", "['23', '--wrong']"): (6, "no such option"),
        text.replace("'--seed 1'", "'--wrong'"): (4, "no such option"),
        text.replace("opset = '23'", ""): (2, "an argument is missing"),
    }
    for content, (line, what) in wrong.items():
        with refused("fleet/plan") as refusal:
            plan_reader.read(plan(tmp_path, content), accepts)
        assert (refusal.problem.where, refusal.problem.what) == (f"{tmp_path / 'p.toml'}, line {line}", what)
        there = plan(tmp_path, f"{content}[environments.there]\npython = '/v/python'\n")
        assert plan_reader.read(there, accepts), "another onnxsmith may have the option"
    own = text.replace("opset = '23'", "").replace("'a'", "{ source = 'a', options = { opset = '23' } }")
    assert plan_reader.read(plan(tmp_path, own), accepts), "the entry of the only model has the argument"


def test_a_plan_that_is_not_there(tmp_path: Path, refused: Refused) -> None:
    for path in (tmp_path / "p.toml", tmp_path):
        with refused("fleet/plan-file"):
            plan_reader.read(path)


@pytest.mark.parametrize(
    ("python", "path"),
    [("python3.12", "python3.12"), ("../v/bin/python", "{}/../v/bin/python"), ("/v/python", "/v/python")],
)
def test_the_path_of_an_interpreter(tmp_path: Path, python: str, path: str) -> None:
    """It is relative to the plan's folder; a name alone is looked for as the shell does."""
    (environment,) = read(tmp_path, f"{FIRST}[environments.a]\npython = '{python}'").environments
    assert environment.python == path.format(tmp_path)


def test_options_of_export_for_a_file(tmp_path: Path, refused: Refused) -> None:
    models(tmp_path, "a.onnx")
    text = "steps = ['export', 'check']\nmodels = [{ source = 'a.onnx', options = { export = '--seed 1' } }]"
    with refused("fleet/plan") as refusal:
        cells_of(plan(tmp_path, text))
    assert refusal.problem.where == f"{tmp_path / 'p.toml'}, line 2"
    assert "is not exported" in refusal.problem.what
