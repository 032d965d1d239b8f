"""`compare` by layer and `reduce`: what they cost and what they find.

    python benchmarks/compare.py [cost] [memory] [faults] [variants] [real] [reduce]

`cost` measures a comparison of all tensors of a vision transformer beside a session for each tensor; `memory` what
one of BERT-base holds at once; `faults` plants faults in exported networks, which have to be named; `variants` does
so in files that were renamed, reordered and simplified by other tools; `real` compares real pairs of models; `reduce`
brings twenty failing models down. Each is a program in `comparing/`, with options of its own. Without a name all run.
Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PROGRAMS = {
    "cost": "cost.py",
    "memory": "memory.py",
    "faults": "faults.py",
    "variants": "variants.py",
    "real": "real.py",
    "reduce": "reducing.py",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    missed = 0
    for name in parser.parse_args().which or PROGRAMS:
        print(f"== {name}", flush=True)
        program = Path(__file__).parent / "comparing" / PROGRAMS[name]
        missed |= subprocess.run([sys.executable, str(program)], check=False).returncode
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
