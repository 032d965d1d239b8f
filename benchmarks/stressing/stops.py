"""What stops leave behind: every verb that writes is stopped at a random moment.

    python benchmarks/hardening.py stops [--count 400] [--seed 2026-11-30] [--only VERB …] [--kinds KIND …]

A trial draws a command line, a kind of stop and a moment: a random one, the appearance of the hidden folder beside the
outputs, or the moment before one of the changes that the command makes in its folder. The outputs exist already, models
have 4 MB of external data. After each stop, every output has to be the old one or the new one as a whole, all inputs
have to be unchanged, and no process may run after 10 s. A signal that can be answered ends the command with
`run/interrupted`. After one more command in this folder, no hidden folder, no unused data file and no temporary file is
left. Disks are full and folders read-only only for root: the trials mount small file systems of their own.

The table counts, by kind and by verb, the trials and their faults. A fault is printed with a line that repeats it with
the same draw; the machine's timing may still differ. `--work FOLDER` keeps the recorded undisturbed runs.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from stressing import stop_lines, stop_trial
from stressing.stop_trial import FAULTS, Outcome, Trial


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of this part."""
    parser.add_argument("--count", type=int, default=400, help="the number of stops")
    parser.add_argument("--seed", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    parser.add_argument("--only", nargs="*", default=[], metavar="VERB")
    parser.add_argument("--kinds", nargs="*", default=[], metavar="KIND", help=", ".join(stop_trial.KINDS))
    parser.add_argument("--trial", type=int, help="repeats this trial only")
    parser.add_argument("--work", help="keeps the recorded runs in this folder")
    parser.add_argument("--minutes", type=float, default=1e9, help="begins no trial after this time")


def table(title: str, rows: Sequence[tuple[str, Outcome]]) -> None:
    """Prints how many trials had which fault."""
    print(f"\n{title:<24}{'tried':>7}" + "".join(f"{name:>14}" for name in FAULTS))
    groups = collections.defaultdict(list)
    for name, outcome in rows:
        groups[name].append(outcome)
    for name, outcomes in [*sorted(groups.items()), ("all", [outcome for _, outcome in rows])]:
        counts = [sum(fault in one.faults for one in outcomes) for fault in FAULTS]
        print(f"{name:<24}{len(outcomes):>7}" + "".join(f"{count or '·':>14}" for count in counts))


def run(given: argparse.Namespace) -> list[str]:
    """Stops commands and prints the table. Returns what failed."""
    begun, late, outcomes = time.monotonic(), [], []
    with tempfile.TemporaryDirectory() as own, stop_trial.kept_signals(), contextlib.suppress(KeyboardInterrupt):
        work = Path(given.work or own).absolute()
        found = stop_lines.prepared(work, given.only)
        begun = time.monotonic()
        kinds = given.kinds or stop_trial.possible()
        print(f"{len(found)} command lines of {len({one.verb for one in found})} verbs, seed {given.seed}", flush=True)
        for number in [given.trial] if given.trial is not None else range(given.count):
            if time.monotonic() - begun > 60 * given.minutes:
                break
            outcome = Trial(work, found, kinds, given.seed, number).run()
            outcomes.append(outcome)
            if outcome.faults:
                late.append(stop_trial.repeated(outcome, number, given.seed))
                print(f"  {late[-1]}", flush=True)
    table("kind of stop", [(one.kind, one) for one in outcomes])
    table("verb", [(one.line.verb, one) for one in outcomes])
    print(f"\n{len(outcomes)} stops in {time.monotonic() - begun:.0f} s")
    return [one.partition("\n")[0] for one in late]
