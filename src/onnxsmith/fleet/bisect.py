"""Finds the version of a package at which the outcome of a cell changes: environments by halving."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnxsmith.base.clock import Clock, advance
from onnxsmith.base.library_versions import release
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.fleet import TriedVersion, TriedVersions
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.system import children
from onnxsmith.base.words import in_place_of, pasted_words
from onnxsmith.fleet import cell_run, environments, plan_reader
from onnxsmith.fleet import cells as cell_lists
from onnxsmith.fleet.cells import Cell
from onnxsmith.fleet.one_cell import chosen
from onnxsmith.fleet.plan import Environment, Plan
from onnxsmith.fleet.row import UNDECIDED, Outcome, Row
from onnxsmith.fleet.steps import Role
from onnxsmith.fleet.stores.base import Store, closing, opened
from onnxsmith.fleet.verbs import address_of

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_OF_RUNTIMES = ("onnxruntime", "openvino", "numpy", "onnx")
_OF_EXPORT = ("torch", "transformers")


@closing()
def bisect(
    path: str | Path,
    model: str,
    package: str,
    *,
    good: str = "",
    bad: str = "",
    versions: Sequence[str] = (),
    setting: str = "",
    environment: str = "",
    store: str = "",
) -> Report:
    """Finds the first version of a package with which a cell ends worse than with the oldest version, or better if it
    ends better with the newest. `versions` are the candidates; without them, the index is asked for those between
    `good` and `bad`, of which either may be the older. The row of each version goes to the store, so that a second call
    goes on.

    Raises:
        OnnxsmithError: `fleet/no-cell`; `fleet/versions` if there are less than two versions, or one cannot be tried;
            `fleet/environment`, `fleet/uv`; the errors of reading the plan.
    """
    with Clock() as clock:
        plan = plan_reader.read(path)
        base = _environment(plan, environment)
        candidates = _ordered(versions) if versions else _between(package, good, bad)
        if len(candidates) < 2:
            raise _too_few(package, candidates)
        options = {"--setting": setting, "--environment": environment, "--store": store, "--good": good, "--bad": bad}
        asked = _Asked(path, model, package, candidates, options)
        search = _Search(plan, asked, base, opened(address_of(plan, store)))
        first, last = (search.row(version).outcome.harm for version in (candidates[0], candidates[-1]))
        low, high = 0, len(candidates) - 1
        while first != last and high - low > 1:
            middle = (low + high) // 2
            now = search.row(candidates[middle]).outcome.harm
            is_changed = now > first if last > first else now < first
            low, high = (low, middle) if is_changed else (middle, high)
        return _report(search, clock, package, candidates[low], candidates[high], _swapped(search, good, bad))


def _environment(plan: Plan, name: str) -> Environment:
    """Returns the environment of a name; without a name, the first."""
    environments = {one.name: one for one in plan.environments}
    if name and name not in environments:
        what, fix = f"the plan has no environment {name!r}", in_place_of(name, list(environments))
        raise problem("fleet/no-cell", what, where=str(plan.path), fix=fix)
    return environments[name] if name else plan.environments[0]


@dataclass(frozen=True)
class _Asked:
    """What was asked for. `options` are further options of the command, as they are typed; "" for those left out."""

    path: str | Path
    model: str
    package: str
    versions: Sequence[str]
    options: Mapping[str, str]

    def without(self, version: str) -> str:
        """Returns the advice to search without a version. Where it is an end of the search, its neighbour is one."""
        rest = [one for one in self.versions if one != version]
        if len(rest) < 2:
            return "give other versions: --versions 1.31.0,1.31.1,1.32.0"
        neighbour = rest[min(list(self.versions).index(version), len(rest) - 1)]
        options = {"--package": self.package, "--versions": ",".join(rest)}
        options |= {name: neighbour if value == version else value for name, value in self.options.items() if value}
        words = ["onnxsmith", "fleet", "bisect", str(self.path), self.model]
        command = pasted_words([*words, *(word for option in options.items() for word in option)])
        return f"leave this version out: `{command}`"


class _Search:
    """The rows of versions that were tried."""

    def __init__(self, plan: Plan, asked: _Asked, base: Environment, store: Store) -> None:
        self._plan, self._asked, self._base, self._store = plan, asked, base, store
        self._package = asked.package
        self.tried: dict[str, Row] = {}

    def row(self, version: str) -> Row:
        """Returns the row of the cell with a version of the package."""
        advance(f"{self._package} {version}", 0, 0)
        cell = self._cell(version)
        known = self._store.row(cell.key)
        if known is None or known.outcome in UNDECIDED:
            self._make(version, cell)
            cell_run.compute(cell, self._store.address, again=known is not None)
        row = self._store.row(cell.key)
        assert row is not None
        if row.outcome in UNDECIDED:
            raise self._untried(version, cell, row.headline)
        self.tried[version] = row
        return row

    def _make(self, version: str, cell: Cell) -> None:
        """Makes the environment of a version, so that everything that uv says of a conflict is told."""
        try:
            environments.interpreter(cell.environment)
        except OnnxsmithError as error:
            if error.problem.id != "fleet/environment":
                raise
            raise self._untried(version, cell, error.problem.why) from error

    def _untried(self, version: str, cell: Cell, why: str) -> OnnxsmithError:
        return problem(
            "fleet/versions",
            f"{self._package} {version} could not be tried",
            where=cell.model.name,
            why=why,
            fix=f"{self._asked.without(version)}; or try again when the package index responds",
        )

    def _cell(self, version: str) -> Cell:
        name = f"{self._package}=={version}"
        requirements = (*self._others(), name)
        plan = replace(self._plan, environments=(Environment(name, self._base.python, requirements),))
        return chosen(
            cell_lists.of_plan(plan), self._asked.path, self._asked.model, self._asked.options["--setting"], ""
        )

    def _others(self) -> list[str]:
        """Returns the requirements beside the package: those of the environment, else what is installed here."""
        if self._base.requirements:
            return [one for one in self._base.requirements if _package_of(one) != self._package.lower()]
        steps = {step.role for listed in self._plan.settings.values() for step in listed}
        names = (*_OF_RUNTIMES, *(_OF_EXPORT if Role.MAKES in steps else ()))
        return [f"{name}=={version}" for name in names if name != self._package and (version := _installed(name))]


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""


def _package_of(requirement: str) -> str:
    match = _NAME.match(requirement.strip())
    return match[0].lower() if match is not None else ""


def _ordered(versions: Sequence[str]) -> list[str]:
    return sorted(dict.fromkeys(versions), key=release)


def _between(package: str, good: str, bad: str) -> list[str]:
    """Returns the versions that the index of pip has between `good` and `bad`, and these two."""
    if not good or not bad:
        raise problem(
            "fleet/versions",
            "the versions to search are not known",
            fix="add --good 1.31.0 --bad 1.32.0, or list the versions: --versions 1.31.0,1.31.1,1.32.0",
        )
    if not _NAME.fullmatch(package):  # pip would take another text for an option or an address
        raise problem(
            "fleet/versions", f"{package!r} is no name of a package", fix="write a name, such as --package onnxruntime"
        )
    low, high = sorted((good, bad), key=release)
    command = [sys.executable, "-m", "pip", "index", "versions", package, "--disable-pip-version-check"]
    try:
        done = children.HERE.run(command, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        done.check_returncode()
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", b"") or b""
        raise problem(
            "fleet/versions",
            f"the versions of {package} could not be read from the index",
            why=(said.decode(errors="replace") or str(error)).strip(),
            fix=f"list them: --versions {low},…,{high}",
        ) from error
    line = next((line for line in done.stdout.decode().splitlines() if line.startswith("Available versions:")), "")
    listed = [text.strip() for text in line.partition(":")[2].split(",")]
    inside = [one for one in listed if one and release(low) <= release(one) <= release(high) and "+" not in one]
    return _ordered([*inside, good, bad])


def _too_few(package: str, candidates: Sequence[str]) -> OnnxsmithError:
    return problem(
        "fleet/versions",
        f"there are no two versions of {package} to compare",
        why=f"the versions are {', '.join(candidates) or 'none'}",
        fix="give more: --versions 1.31.0,1.31.1,1.32.0",
    )


def _swapped(search: _Search, good: str, bad: str) -> tuple[str, ...]:
    """Returns a note if the cell ends worse with the version that was named as good."""
    if good not in search.tried or bad not in search.tried:
        return ()
    well, ill = search.tried[good].outcome, search.tried[bad].outcome
    if well.harm <= ill.harm:
        return ()
    return (
        f"--good and --bad seem swapped: the cell ends as {well} with {good} (--good), as {ill} with {bad} (--bad)",
    )


def _report(search: _Search, clock: Clock, package: str, before: str, after: str, notes: Sequence[str]) -> Report:
    """Returns the report of a search. `before` and `after` are neighbours between which the outcome changes, or the
    ends of the search if it is the same with both."""
    tried = tuple(
        TriedVersion(version, str(row.outcome), row.headline, row.seconds)
        for version, row in sorted(search.tried.items(), key=lambda item: release(item[0]))
    )
    parts = (TriedVersions(package, tried), Timing(clock.passed()))
    old, new = search.tried[before], search.tried[after]
    if old.outcome is new.outcome:
        headline = (
            f"there is no change to find: the cell ends as {old.outcome} both with {package} {before} and with {after}"
        )
        return Report("fleet bisect", Verdict.CANNOT_TELL, parts, notes=tuple(notes), headline=headline)
    direction = "worse" if new.outcome.harm > old.outcome.harm else "better"
    headline = (
        f"{package} {after} is the first version with a {direction} result: {_ending(new)}; {before}: {_ending(old)}"
    )
    return Report("fleet bisect", Verdict.DONE, parts, notes=tuple(notes), headline=headline)


def _ending(row: Row) -> str:
    """Returns the outcome, and what was wrong."""
    return str(row.outcome) if row.outcome is Outcome.DONE else f"{row.outcome} ({row.headline})"
