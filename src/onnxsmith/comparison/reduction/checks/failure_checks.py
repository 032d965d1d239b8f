"""Checks that a model fails: refused, crashed, too slow, different on two runtimes, or by a command of the user."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from onnxsmith.base.folders import OwnPath, temporary
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.system import children
from onnxsmith.base.words import pasted_words
from onnxsmith.comparison.reduction import portable_arrays
from onnxsmith.comparison.reduction.checks.base import (
    Attempt,
    Check,
    End,
    Failure,
    Outcome,
    ended,
    failed,
    is_refusal,
    mark,
)
from onnxsmith.comparison.reduction.runtime_workers import Bench, identity
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.runtimes._onnxruntime_host import LEVELS, PROVIDERS
from onnxsmith.runtimes._openvino_host import EXACT
from onnxsmith.runtimes.base import Options, Outputs
from onnxsmith.verification.rounding import Rounding, roundings
from onnxsmith.verification.value_comparison import Difference, difference

Stage = Literal["load", "run"]


@dataclass(frozen=True)
class _Single(Check):
    """Loads and runs the model on one runtime. `failure` distinguishes the wanted failure from other errors."""

    usage = "RUNTIME"

    runtime: str

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        if len(words) != 1:
            raise ValueError("it takes one runtime")
        return cls(words[0])

    def runtimes(self) -> tuple[str, ...]:
        return (self.runtime,)

    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        stage: Stage = "load"
        begin = time.perf_counter()
        try:
            session = bench.prepare(self.runtime, attempt.path, attempt.signature, time_limit=self.patience())
            stage = "run"
            session.run(attempt.feeds)
        except OnnxsmithError as error:
            failure = self.failure(error.problem, stage, attempt)
            return ended(error) if failure is None else failed(failure)
        return Outcome(End.PASSED, why=f"{self.runtime} loads and runs it in {time.perf_counter() - begin:.2g} s")

    @abstractmethod
    def failure(self, found: Problem, stage: Stage, attempt: Attempt) -> Failure | None:
        """Returns the failure that a problem while the model is loaded or run shows; None if it is another error."""

    def script(self, failure: Failure) -> tuple[str, ...]:
        return (*script_opening(self.runtime), f"print({script_call(self.runtime)})")


@dataclass(frozen=True)
class Refuses(_Single):
    """The runtime refuses to load or to run the model. The same failure is the same problem with the same message,
    apart from names and numbers."""

    def failure(self, found: Problem, stage: Stage, attempt: Attempt) -> Failure | None:
        if not is_refusal(found):
            return None
        what = f"{self.runtime} refuses to {stage} it: {found.what}. {found.why}".strip()
        return Failure(what, frozenset({f"{stage} {mark(found, attempt.names)}"}), doubtful=stage == "run")

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        marks = {"onnxruntime": "onnxruntime.capi"}
        return status == 1 and marks.get(self.runtime.partition(":")[0], "Traceback") in said


@dataclass(frozen=True)
class Crashes(_Single):
    """The runtime's process dies. The same failure is the same signal or exit status in the same stage: while the model
    is loaded, or while it runs."""

    def failure(self, found: Problem, stage: Stage, attempt: Attempt) -> Failure | None:
        if found.id != "runtime/died":
            return None
        cause = re.search(r"\((.*)\)", found.what)
        how = cause[1] if cause else "unknown"
        return Failure(f"{found.what} while it {stage}s the model", frozenset({f"{stage} {how}"}))

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status < 0 or (status != 0 and "Traceback" not in said)


@dataclass(frozen=True)
class Slow(_Single):
    """Loading the model, or running it once, takes longer than the given seconds. The call is then stopped."""

    usage = "RUNTIME SECONDS"

    seconds: float

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        if len(words) != 2:
            raise ValueError("this check needs a runtime and a number of seconds")
        seconds = float(words[1])
        if not 0 < seconds < float("inf"):
            raise ValueError("the number of seconds has to be more than 0")
        return cls(words[0], seconds)

    def patience(self) -> float:
        return self.seconds

    def failure(self, found: Problem, stage: Stage, attempt: Attempt) -> Failure | None:
        if found.id != "runtime/timeout":
            return None
        doing = {"load": "loading", "run": "running"}[stage]
        return Failure(f"{doing} the model takes {self.runtime} longer than {self.seconds:g} s", frozenset({doing}))

    def script(self, failure: Failure) -> tuple[str, ...]:
        lines = script_opening(self.runtime)
        watch = f"faulthandler.dump_traceback_later({self.seconds:g}, exit=True)  # loading and running end before that"
        return ("import faulthandler", *lines, watch, f"print({script_call(self.runtime)})")

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status == 1 and "Timeout (" in said


@dataclass(frozen=True)
class Differs(Check):
    """An output differs by more than rounding explains, or one runtime refuses a model that the other accepts. The same
    failure differs in the same respect (values, NaN, shape, dtype), by at least a hundredth of the first difference."""

    usage = "RUNTIME RUNTIME"

    first: str
    second: str

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        if len(words) != 2 or identity(words[0]) == identity(words[1]):
            raise ValueError("this check needs two different runtimes")
        return cls(*words)

    def runtimes(self) -> tuple[str, ...]:
        return (self.first, self.second)

    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        answers: list[Outputs] = []
        refusals: list[tuple[str, Problem]] = []
        for name in (self.first, self.second):
            try:
                answers.append(bench.prepare(name, attempt.path, attempt.signature).run(attempt.feeds))
            except OnnxsmithError as error:
                if not is_refusal(error.problem):
                    return ended(error)
                refusals.append((name, error.problem))
        if len(refusals) == 2:
            return Outcome(End.REFUSED, why="; ".join(f"{name}: {found.why}" for name, found in refusals))
        if refusals:
            name, found = refusals[0]
            what = f"{name} refuses a model that the other runtime accepts: {found.what}. {found.why}"
            return failed(Failure(what, frozenset({f"{name} {mark(found, attempt.names)}"}), raises=True))
        return self._compared(attempt, *answers)

    def _compared(self, attempt: Attempt, first: Outputs, second: Outputs) -> Outcome:
        if not any(difference(first[name], second[name], 0.0).reason for name in first):
            return Outcome(End.PASSED, why="every output is equal")
        # Only for unequal outputs, because the bounds need shape inference.
        bounds = roundings(inferred(attempt.model)[0])
        found = dict(_differences(first, second, bounds))
        if not found:
            return Outcome(End.PASSED, why="no output differs by more than rounding explains")
        worst = max(found, key=lambda name: found[name].worst_rel)
        marks = frozenset(re.sub(r"\[[^\]]*\]|\d[\d.,]*", "#", item.reason) for item in found.values())
        what = f"output {worst!r} differs between {self.first} and {self.second}: {_shown(found[worst])}"
        bound = bounds[worst].tolerance if worst in bounds else 0.0
        tolerance = (bound, bound * found[worst].scale)
        return failed(Failure(what, marks, found[worst].worst_rel, tolerance=tolerance))

    def script(self, failure: Failure) -> tuple[str, ...]:
        rtol, atol = failure.tolerance
        return (
            *script_opening(self.first, self.second),
            "fails = False",
            f"first = {script_call(self.first)}",
            f"second = {script_call(self.second)}",
            "for a, b in zip(map(np.asarray, first), map(np.asarray, second), strict=True):",
            '    print(a, b, sep="\\n")',
            "    floats = a.dtype.kind in 'fc' and a.dtype == b.dtype and a.shape == b.shape",
            f"    close = floats and np.allclose(a, b, rtol={rtol:.2g}, atol={atol:.2g}, equal_nan=True)",
            "    fails |= not (close or (not floats and a.dtype == b.dtype and np.array_equal(a, b)))",
            "raise SystemExit(fails)",
        )

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status == 1 and ("Traceback" in said) == failure.raises


def _differences(first: Outputs, second: Outputs, bounds: Mapping[str, Rounding]) -> Iterator[tuple[str, Difference]]:
    for name, value in first.items():
        rounding = bounds.get(name)
        found = difference(value, second[name], *(rounding.bounds if rounding else (0.0,)))
        if found.reason:
            yield name, found


def _shown(found: Difference) -> str:
    size = f" (by up to {found.worst_abs:.3g}, at a scale of {found.scale:.3g})" if found.worst_abs else ""
    return found.reason + size


_LAST = 300
"""How many characters of the command's output a report shows. A choice."""


@dataclass(frozen=True)
class Command(Check):
    """The command ends with a status other than 0, or with `status`. The same failure is the same status. In the
    command, `{model}` stands for the file and `{inputs}` for an `.npz` of inputs. It runs in the current folder,
    without a shell."""

    usage = "WORD… with {model}"

    words: tuple[str, ...]
    status: int | None = None

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        if not any("{model}" in word for word in words):
            raise ValueError("the command has no place for the path of the model: write {model} there")
        return cls(tuple(words))

    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        with temporary() as folder:
            inputs = OwnPath(folder / "inputs.npz")
            if any("{inputs}" in word for word in self.words):
                portable_arrays.write(attempt.feeds, inputs)
            words = [word.replace("{model}", str(attempt.path)).replace("{inputs}", str(inputs)) for word in self.words]
            code, said = self._run(words, bench.time_limit)
        if code is None:
            return Outcome(End.TIMED_OUT, why=f"the command took longer than {bench.time_limit:g} s")
        if code == 0 if self.status is None else code != self.status:
            end = End.CRASHED if children.crashed(code) else End.PASSED
            return Outcome(end, why=f"the command ended with status {code}")
        last = said.strip()[-_LAST:]
        return failed(Failure(f"the command ended with status {code}: {last}".rstrip(": "), frozenset({str(code)})))

    def _run(self, words: list[str], time_limit: float) -> tuple[int | None, str]:
        try:
            done = children.HERE.run(words, timeout=time_limit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            return None, ""
        except (OSError, ValueError) as error:
            raise problem(
                "reduce/command",
                "the command could not be started",
                where=pasted_words(self.words),
                why=str(error),
                fix='give a program with its arguments: --command "python check.py {model}"',
            ) from error
        return done.returncode, done.stdout.decode(errors="replace")

    def files(self) -> tuple[Path, ...]:
        return tuple(Path(word) for word in self.words if _is_script(word))

    def script(self, failure: Failure) -> tuple[str, ...]:
        wanted = "code != 0" if self.status is None else f"code == {self.status}"
        return (
            "import subprocess",
            "import sys",
            "",
            f"command = [{', '.join(map(_quoted, self.words))}]",
            "code = subprocess.run(command, check=False).returncode",
            'print("the exit status is", code)',
            f"raise SystemExit({wanted})",
        )

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        """Whether the program printed the same exit status as before."""
        return status == 1 and f"the exit status is {next(iter(failure.marks))}\n" in said


def _is_script(word: str) -> bool:
    """Whether a word of the command is the path of a user's script, of which the folder needs a copy."""
    return word.endswith((".py", ".sh")) and Path(word).is_file()


def _quoted(word: str) -> str:
    """Returns a word as Python code for the program, with files in its own folder."""
    if word == sys.executable:
        return "sys.executable"
    if _is_script(word):
        return repr(Path(word).name)
    return repr(word.replace("{model}", "model.onnx").replace("{inputs}", "inputs.npz"))


_IMPORTS = {
    "onnxruntime": "import onnxruntime as ort",
    "openvino": "import openvino as ov",
    "reference": "from onnx.reference import ReferenceEvaluator",
}
"""Runtimes that the program calls directly; others are called through onnxsmith."""


def script_opening(*runtimes: str) -> tuple[str, ...]:
    """Returns the lines that import the runtimes, read the inputs, and set each runtime's options."""
    names = {text.partition(":")[0] for text in runtimes}
    others = names - _IMPORTS.keys()
    lines = ["from pathlib import Path", ""] if others else []
    lines += ["import numpy as np", *(line for name, line in _IMPORTS.items() if name in names)]
    if others:
        lines.append("from onnxsmith.runtimes.base import get")
    lines += ["", 'feeds = dict(np.load("inputs.npz"))']
    for text in dict.fromkeys(runtimes):
        lines += _setting(text)
    return tuple(lines)


def script_call(runtime: str) -> str:
    """Returns an expression that runs the model on a runtime and gives a list of outputs."""
    name, options = identity(runtime)
    match name:
        case "reference":
            return 'ReferenceEvaluator("model.onnx").run(None, feeds)'
        case "onnxruntime":
            chosen = f", {_variable(runtime)}" if _differ(options) else ""
            own = [PROVIDERS[options.provider]] + [PROVIDERS["cpu"]] * (options.provider != "cpu")
            providers = ", ".join(f'"{provider}"' for provider in own)
            return f'ort.InferenceSession("model.onnx"{chosen}, providers=[{providers}]).run(None, feeds)'
        case "openvino":
            model = f'ov.Core().compile_model("model.onnx", "{options.provider.upper()}", {_variable(runtime)})'
            return f"list({model}(feeds).to_tuple())"
        case _:
            return f'list(get("{runtime}").prepare(Path("model.onnx")).run(feeds).values())'


def _setting(runtime: str) -> list[str]:
    """Returns the lines that set a runtime's options, if they differ from the defaults."""
    (name, options), variable = identity(runtime), _variable(runtime)
    if name == "onnxruntime" and _differ(options):
        lines = [f"{variable} = ort.SessionOptions()"]
        if options.optimization != "all":
            level = LEVELS[options.optimization]
            lines.append(f"{variable}.graph_optimization_level = ort.GraphOptimizationLevel.{level}")
        if options.threads:
            lines.append(f"{variable}.intra_op_num_threads = {options.threads}")
        return lines
    if name == "openvino":
        wanted = dict(EXACT) if options.provider == "cpu" else {"INFERENCE_PRECISION_HINT": "f32"}
        if options.threads:
            wanted["INFERENCE_NUM_THREADS"] = str(options.threads)
        return [f"{variable} = {{", *(f'    "{key}": "{value}",' for key, value in wanted.items()), "}"]
    return []


def _differ(options: Options) -> bool:
    return options.optimization != "all" or options.threads != 0


def _variable(runtime: str) -> str:
    return re.sub(r"\W", "_", f"options_{runtime}")
