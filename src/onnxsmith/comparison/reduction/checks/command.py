"""Checks with a command of the user, by the command's exit status."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from onnxsmith.base.problem import problem
from onnxsmith.base.system import children
from onnxsmith.comparison.reduction import portable_arrays
from onnxsmith.comparison.reduction.checks.base import Attempt, Check, End, Failure, Outcome, failed
from onnxsmith.comparison.reduction.runtime_workers import Bench

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
            raise ValueError("the command does not say where the model goes: {model}")
        return cls(tuple(words))

    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        inputs = attempt.folder / "inputs.npz"
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
            process = children.HERE.start(  # so that processes of the command end with it
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except (OSError, ValueError) as error:
            raise problem(
                "reduce/command",
                "the command could not be started",
                where=shlex.join(self.words),
                why=str(error),
                fix='give a program with its arguments: --command "python check.py {model}"',
            ) from error
        try:
            said, _ = process.communicate(timeout=time_limit)
        except subprocess.TimeoutExpired:
            children.HERE.end(process)
            return None, ""
        except BaseException:
            children.HERE.end(process)
            raise
        return process.returncode, said.decode(errors="replace")

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
