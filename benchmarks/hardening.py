"""What hostile files, stops, busy hosts and very large models do to the commands.

    python benchmarks/hardening.py load [--nodes 25000 50000 100000] [--runs 2] [--only chain weights …] [--large]

Each part has a module of its own in `stressing`, which says what it counts. Exits with 1 if anything failed or is over
its target.
"""

from __future__ import annotations

import argparse
import sys

from stressing import load, mutants

PARTS = {"load": load, "mutants": mutants}


def main() -> None:
    """Runs one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for name, part in PARTS.items():
        part.add_options(parts.add_parser(name, help=(part.__doc__ or "").partition("\n")[0]))
    given = parser.parse_args()
    late = PARTS[given.part].run(given)
    print("over target or failed: " + ("; ".join(late) or "none"))
    sys.exit(bool(late))


if __name__ == "__main__":
    main()
