"""The benchmark's modules import each other as its programs do: from the folder `benchmarks`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
