"""Runs the tests in tiers: `--tier=first` for `make test`, `--tier=all` for `make test-all`.

Without `--tier` everything is run but what is marked `whole`: what somebody wants who names a file. Each run ends with
what it left out, and how to run that.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tiers import choosing, costs
from tests.tiers.progress import Progress

_SHOWN = 12
"""Cases and folders that the summary names. A choice."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption(
        "--tier", choices=["first", "most", "all"], help="first: make test; all: make test-all; most: without `whole`"
    )
    group.addoption("--sample-seed", help="draws the rows of the first tier; the date if left out")
    group.addoption("--shard", metavar="K/N", help="the K-th of N parts that take equally long")
    group.addoption(
        "--passed", metavar="FILE", help="leaves out what passed on this tree by this file; notes what passes"
    )
    group.addoption("--minutes", type=float, metavar="N", help="starts no case after that time")
    group.addoption("--renew-costs", action="store_true", help="writes what the cases cost to the file of --costs")
    group.addoption("--costs", type=Path, default=costs.FILE, metavar="FILE", help="what the cases cost")


def pytest_configure(config: pytest.Config) -> None:
    given = getattr(config, "workerinput", None)
    if given is None:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        config.option.sample_seed = config.option.sample_seed or today
        config.option.tests_end = time.time() + 60 * config.option.minutes if config.option.minutes else None
        config.pluginmanager.register(_Controller(config), "onnxsmith-tiers-controller")
    else:
        config.option.sample_seed, config.option.tests_end = given["tiers"]
    config.pluginmanager.register(_Worker(config.option.tests_end), "onnxsmith-tiers-worker")


def pytest_report_header(config: pytest.Config) -> list[str]:
    if config.getoption("tier") != "first":
        return []
    seed = config.getoption("sample_seed")
    return [f"first tier: cases up to {choosing.LIMIT:g} s; rows drawn with --sample-seed {seed}"]


class _Worker:
    """Chooses the cases, runs them until the time is over, and says what each cost."""

    def __init__(self, end: float | None) -> None:
        self.end = end
        """When no further case is started, in seconds since 1970."""
        self.left: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        self._shared: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        known, cases = costs.read(config.getoption("costs")), [item.nodeid for item in items]
        chosen = set(cases)
        if config.getoption("tier") == "first":
            exhaustive = {item.nodeid for item in items if item.get_closest_marker("whole")}
            rest = [case for case in cases if case not in exhaustive]
            chosen = choosing.first_tier(rest, known, choosing.smoke(), config.getoption("sample_seed"))
        elif config.getoption("tier") in (None, "most"):
            chosen = {item.nodeid for item in items if not item.get_closest_marker("whole")}
        if config.getoption("shard"):
            number, _, of = config.getoption("shard").partition("/")
            chosen &= choosing.shard(cases, known, int(number), int(of))
        if config.getoption("passed"):
            done = Progress(Path(config.getoption("passed"))).passed()
            chosen -= done
            cases = [case for case in cases if case not in done]
        self.left = Counter(_room(case) for case in cases if case not in chosen)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if self.end is None or time.time() < self.end:
            return None
        self.late[_room(item.nodeid)] += 1
        return True  # counts as done, without a report

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        start = time.perf_counter()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                name = f"{fixturedef.baseid}::{fixturedef.argname}"
                self._shared[name] = self._shared.get(name, 0.0) + time.perf_counter() - start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        report: Any = yield
        report.shared, self._shared = self._shared, {}
        if call.when == "setup":
            found = getattr(item, "_fixtureinfo", None)
            named = found.name2fixturedefs.values() if found is not None else ()
            report.uses = [f"{one[-1].baseid}::{one[-1].argname}" for one in named if one[-1].scope != "function"]
        return report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left"] = dict(self.left)
            session.config.workeroutput["late"] = dict(self.late)


class _Controller:
    """Adds up what the workers say, and tells it at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.seconds: Counter[str] = Counter()
        self.uses: dict[str, list[str]] = {}
        self.shared: Counter[str] = Counter()
        self.failed: set[str] = set()
        self.left: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        self.progress = Progress(Path(config.getoption("passed"))) if config.getoption("passed") else None
        if self.progress is not None:
            self.progress.begin()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration - sum(getattr(report, "shared", {}).values())
        self.shared.update(getattr(report, "shared", {}))
        if hasattr(report, "uses"):
            self.uses[report.nodeid] = report.uses
        if report.outcome == "failed":
            self.failed.add(report.nodeid)
        if report.when == "teardown" and self.progress is not None and report.nodeid not in self.failed:
            self.progress.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Hands the seed and the end to a worker: they are the same for all, and for no other run of pytest."""
        node.workerinput["tiers"] = (node.config.option.sample_seed, node.config.option.tests_end)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {})
        self.left = Counter(output.get("left", {}))  # every worker leaves out the same
        self.late += Counter(output.get("late", {}))

    def costs(self) -> dict[str, float]:
        """What each case cost. What several share is divided among them."""
        users = Counter(name for uses in self.uses.values() for name in uses)
        return {
            case: seconds + sum(self.shared[name] / users[name] for name in self.uses.get(case, ()))
            for case, seconds in self.seconds.items()
            if case not in self.failed
        }

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        worker: Any = config.pluginmanager.get_plugin("onnxsmith-tiers-worker")
        late = worker.late + self.late
        left = worker.left + self.left + late
        if config.getoption("tier") is None and not config.getoption("renew_costs"):
            return
        say = terminalreporter.write_line
        terminalreporter.write_sep("=", "tiers")
        measured, old = self.costs(), costs.read(config.getoption("costs"))
        slow = _slower(measured, old)
        if config.getoption("renew_costs"):
            costs.write(costs.renewed(old, measured, config.rootpath), config.getoption("costs"))
            say(f"{config.getoption('costs')} is written")
        elif slow:
            say(f"{len(slow)} cases cost more than {choosing.LIMIT:g} s, and tests/tiers/costs.txt does not say so:")
            for case in slow[:_SHOWN]:
                say(f"  {measured[case]:.1f} s  {case}")
            say("renew it: make test-costs TESTS=tests/…")
        say(f"{len(self.seconds)} cases were run")
        if late:
            say(f"{late.total()} were not, as the time was over")
        if left:
            rooms = ", ".join(f"{room} {count}" for room, count in left.most_common(_SHOWN))
            more = f", and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
            say(f"{left.total()} further cases of make test-all were not run: {rooms}{more}")
            say("run them: make test-all (SHARD=1/6 for a part), or make test-changed for what a change reaches")


def _slower(measured: dict[str, float], old: dict[str, float]) -> list[str]:
    """The cases that belong into the second tier by what they cost here, and not by the file; the dearest first."""
    factor = costs.pace(old, measured)
    listed = set(choosing.smoke())
    slow = [
        case
        for case, seconds in measured.items()
        if seconds * factor > 2 * choosing.LIMIT >= 2 * old.get(case, 0.0)
        and listed.isdisjoint((case.partition("[")[0], f"{case.partition('[')[0]}[*]"))
    ]
    return sorted(slow, key=lambda case: -measured[case])


def _room(case: str) -> str:
    parts = case.partition("::")[0].split("/")
    return "/".join(parts[:2])
