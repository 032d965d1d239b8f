"""Is one host: `python -m stressing.hosting.host_process NAME before|after CALLS MODELS REPORT`."""

from __future__ import annotations

import faulthandler
import json
import sys
from pathlib import Path

from stressing.hosting import libraries, programs
from stressing.hosting.work import Work


def main() -> None:
    """Runs the host, and writes what it found."""
    faulthandler.enable()
    name, order, count, models, report = sys.argv[1:]
    host, _ = programs.HOSTS[name]
    if name != "jupyter":  # the kernel imports them
        libraries.start(Path(models), order)
    found = host(Work(Path(models)), int(count))
    Path(report).write_text(json.dumps([one.data() for one in found]), encoding="utf-8")


if __name__ == "__main__":
    main()
