"""Runs tests many times in a row on a busy machine, and names those that failed in some of the runs.

    python tools/repeat.py --times 20 --load 8 tests/runtimes

All arguments that are not its own go to pytest. The exit status is 1 if a case failed in any run.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

BUSY = "while True: pass"
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", re.MULTILINE)
RAN = re.compile(r"\b(\d+) (?:passed|failed)")


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Keeps as many processes busy while the block runs."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


def repeated(times: int, pytest_arguments: list[str]) -> tuple[Counter[str], int]:
    """Runs the tests so many times. Returns how often each case failed, and the fewest cases of a run.

    A run that breaks off, or in which no case was run, counts as a failure of all.
    """
    failures, fewest = Counter[str](), sys.maxsize
    for number in range(1, times + 1):
        start = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "-rfE", *pytest_arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        failed = FAILED.findall(done.stdout)
        ran = sum(map(int, RAN.findall(done.stdout.rpartition("\n=")[2] or done.stdout[-200:])))
        if not failed and (done.returncode or not ran):
            failed = [f"the whole run: exit status {done.returncode}"]
            print(done.stdout[-2000:])
        failures.update(failed)
        fewest = min(fewest, ran)
        print(
            f"run {number} of {times}: {ran} cases, {len(failed)} failed, {time.monotonic() - start:.0f} s", flush=True
        )
        for name in failed:
            print(f"  {name}", flush=True)
    return failures, fewest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--load", type=int, default=8, help="busy processes beside the tests")
    own, pytest_arguments = parser.parse_known_args()
    with load(own.load):
        failures, fewest = repeated(own.times, pytest_arguments)
    for name, count in failures.most_common():
        print(f"failed {count} of {own.times} times: {name}")
    print(f"{fewest} cases, {own.times} times under a load of {own.load}: {len(failures)} flaky")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
