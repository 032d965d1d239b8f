"""`simplify` beside other simplifiers: on the same files, one fresh process for each, each result held to its original.

    python benchmarks/simplify.py [--folder .bench-corpus] [--only CLASS …] [--files NAME …] [--tools TOOL …]
                                  [--latency] [--timeout 300] [--tables] [--gaps] [--summary]

Takes the corpus that `benchmarks/corpus.py` made, and prints one table a class. `--files` are names of models of the
corpus or paths of .onnx files. What was measured is kept in FOLDER/simplify.jsonl and results in FOLDER/results, so
that a run that was stopped goes on, and only what changed is measured again; `--tables` prints what is known and
measures nothing, `--gaps` also lists where onnxsmith is not the best, and every result that was not right, `--summary`
prints the tables of docs/benchmarks.md instead.

A result is "wrong" when onnxsmith's own verification, on several inputs and sizes, says that it answers differently;
"interface" when it answers the same but inputs or outputs are gone, renamed or frozen; "invalid" when it cannot be read
or ONNX Runtime does not take it; "refused" when the tool wrote nothing, or not within the time; "crashed" when a signal
ended it. CPU is user and system time of the tool's process, peak memory is the kernel's figure;
onnxsmith runs without its verification. `measuring/figures.py` says what nodes, shape glue and origin are,
`measuring/tables.py` how they are put together, `measuring/latency.py` how latency is taken.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import corpus
from measuring.measure import Bench, Entry
from measuring.records import Log
from measuring.tables import Row, behind, failures, summary, table
from measuring.tool_process import TOOLS


def entries(folder: Path, only: Sequence[str], files: Sequence[str]) -> list[Entry]:
    """The models to measure: of the corpus, or those that were named. Exits when a name fits nothing."""
    found = [Entry(path, kind) for kind in (only or corpus.KINDS) for path in sorted((folder / kind).glob("*.onnx"))]
    if files:
        given = [Entry(Path(file), "given") for file in files if file.endswith(".onnx")]
        found = [entry for entry in found if entry.name in files] + given
    if not found:
        sys.exit(f"no models in {folder}: run `python benchmarks/corpus.py` first")
    return found


def measure(bench: Bench, found: Sequence[Entry], tools: Sequence[str], latency: bool) -> None:
    """Measures what is not known yet, and says what came of each model."""
    for index, entry in enumerate(found):
        before = bench.original(entry)
        records = [bench.tool(entry, tool) for tool in tools]
        if latency and before.status == "right":
            records = bench.latency(entry, records)
        cells = (f"{record.tool} {record.nodes if record.status == 'right' else record.status}" for record in records)
        print(f"{index + 1}/{len(found)} {entry.kind}/{entry.name} {before.nodes}: {', '.join(cells)}", flush=True)


def known(bench: Bench, found: Sequence[Entry], tools: Sequence[str]) -> list[Row]:
    """A row for each model that was measured."""
    rows = []
    for entry in found:
        original = bench.log.get(entry.kind, entry.path, "original")
        records = {tool: bench.log.get(entry.kind, entry.path, tool) for tool in tools}
        if original is not None:
            rows.append(Row(original, {tool: record for tool, record in records.items() if record is not None}))
    return rows


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=corpus.FOLDER)
    parser.add_argument("--only", nargs="*", default=[], metavar="CLASS", choices=corpus.KINDS)
    parser.add_argument("--files", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--tools", nargs="*", default=list(TOOLS), metavar="TOOL", choices=TOOLS)
    parser.add_argument("--latency", action="store_true")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--gaps", action="store_true")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    tools = [tool for tool in given.tools if find_spec(TOOLS[tool][0]) is not None]
    bench = Bench(Log(given.folder / "simplify.jsonl"), given.folder / "results", given.timeout)
    found = entries(given.folder, given.only, given.files)
    if not given.tables:
        measure(bench, found, tools, given.latency)
    rows = known(bench, found, tools)
    kinds = list(dict.fromkeys(row.original.kind for row in rows))
    if given.summary:
        print("\n" + summary(rows, tools))
        kinds = []
    for kind in kinds:
        print("\n" + table(kind, [row for row in rows if row.original.kind == kind], tools))
    if len(kinds) > 1:
        print("\n" + table("all", rows, tools))
    if given.gaps:
        print("\nnot the best:\n" + behind(rows))
        print("\nnot right:\n" + failures(rows))


if __name__ == "__main__":
    main()
