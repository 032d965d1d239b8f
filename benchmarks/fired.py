"""Which members fire outside of their own tests: rules, strategies, rewrites, translations, checks of the linter,
causes, lowerings and fixes, by the number of models in which each did something.

    python benchmarks/fired.py [--only CORPUS …] [--limit N] [--names NAME …] [--seconds 60] [--folder .bench-fired]
                               [--tables]

The corpora are those of the other benchmarks: networks of `models/architectures.py`, files that packages ship, the test
models of the ONNX standard, models of packages, and the suites of `export.py`; `idioms` are small modules with a form
of a named package, `sources` the code of models, which the linter reads. What is not installed is left out.
Each model is measured in a forked process and kept in FOLDER/CORPUS.jsonl, so that a run that was stopped goes on.
`--limit` spreads N models over a corpus. A count is one for each model, however often a member fired in it.
`--tables` prints what is known and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from firing.corpora import CORPORA  # noqa: E402
from firing.forms import REPLACED  # noqa: E402
from firing.members import ROOMS, Note, wrap  # noqa: E402

FOLDER = HERE.parent / ".bench-fired"
WAITING = 10
"""Time may be this many times the limit of processor time: ends what waits without computing."""
NOT_COUNTED = ("tried", "captured")
"""Labels of what did not serve: a fix after which the target still refuses, a graph that was not written."""
Records = dict[str, dict[str, Any]]
"""Model → its notes, seconds and error."""


def measure(corpus: str, options: argparse.Namespace) -> None:
    """Measures the models that are not known, and keeps each at once."""
    store = options.folder / f"{corpus}.jsonl"
    known = records(store)
    names = options.names or spread(CORPORA[corpus].names(), options.limit)
    for index, name in enumerate(names):
        if name in known:
            continue
        began = time.monotonic()
        notes, error = apart(corpus, name, options.seconds)
        line = {"name": name, "notes": sorted(notes), "error": error, "seconds": round(time.monotonic() - began, 1)}
        with store.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{corpus} {index + 1}/{len(names)} {name}: {len(notes)} {error}", flush=True)


def apart(corpus: str, name: str, seconds: int) -> tuple[list[Note], str]:
    """Measures one model in a forked process; returns its notes and its error. What was noted before an error, or
    before the time was over, counts."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        silence()
        out, error, found = os.fdopen(writing, "w"), "", set[Note]()
        signal.signal(signal.SIGPROF, _late)
        signal.signal(signal.SIGALRM, _late)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(WAITING * seconds)
        try:
            CORPORA[corpus].measure(name, found.update)
        except BaseException as raised:  # noqa: BLE001  # the models after this one go on
            error = f"{type(raised).__name__}: {raised}"[:300]
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        json.dump({"notes": sorted(found), "error": error}, out)
        out.close()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    if not text:
        return [], f"died with status {status}"
    told = json.loads(text)
    return [tuple(one) for one in told["notes"]], told["error"]


class LateError(BaseException):
    """Ends a measurement; not an Exception, which exporters catch."""


def _late(*_: object) -> None:
    raise LateError("the time was over")


def warm() -> None:
    """Exports once before the forks: the first export of a process takes many times as long as the next."""
    import torch

    import onnxsmith

    torch.set_num_threads(1)
    onnxsmith.export(torch.nn.Linear(2, 2), (torch.rand(1, 2),), output=os.devnull, verify=False)


def silence() -> None:
    """Sends what exporters print nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def spread(names: Sequence[str], limit: int) -> list[str]:
    """At most `limit` names, evenly over all."""
    if not limit or limit >= len(names):
        return list(names)
    return [names[index * len(names) // limit] for index in range(limit)]


def records(store: Path) -> Records:
    """What is known of a corpus."""
    lines = store.read_text(encoding="utf-8").splitlines() if store.exists() else []
    return {record["name"]: record for record in map(json.loads, lines)}


def tables(known: dict[str, Records]) -> str:
    """A table of the corpora, one for each room, and the members that fired nowhere."""
    found: dict[tuple[str, str], dict[str, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
    for corpus, models in known.items():
        for name, record in models.items():
            for package, id_, label in record["notes"]:
                found[package, id_][label].add((corpus, name))
    total = sum(map(len, known.values()))
    lines = ["| corpus | models | not measured to the end |", "| --- | --- | --- |"]
    lines += [
        f"| {corpus} | {len(models)} | {sum(bool(one['error']) for one in models.values())} |"
        for corpus, models in known.items()
    ]
    silent: dict[str, list[str]] = {}
    for room in ROOMS:
        members = room.classes()
        lines += ["", f"`{room.package}`, of {total} models:", ""]
        lines += ["| member | models | corpora |", "| --- | --- | --- |"]
        counts = {id_: _models(found[room.package, id_]) for id_ in members}
        for id_, models in sorted(counts.items(), key=lambda pair: (-len(pair[1]), pair[0])):
            by_corpus = Counter(corpus for corpus, _ in models)
            said = ", ".join(f"{corpus} {count}" for corpus, count in by_corpus.most_common())
            labels = found[room.package, id_]
            if set(labels) - {"fired", "served"}:
                said += f" ({', '.join(f'{label} {len(some)}' for label, some in sorted(labels.items()))})"
            if models:
                lines.append(f"| {id_} | {len(models)} | {said} |")
        silent[room.package] = [
            f"{id_} ({', '.join(found[room.package, id_])})" if found[room.package, id_] else id_
            for id_, models in counts.items()
            if not models
        ]
    replaced = ", ".join(
        f"{word} {len(labels['served'])}" for (room, word), labels in found.items() if room == REPLACED
    )
    lines += ["", f"Lines that exports replaced, by models: {replaced or 'none'}.", "", "Fired in no model:", ""]
    lines += [f"- `{package}`, {len(ids)}: {', '.join(ids) or 'none'}" for package, ids in silent.items()]
    return "\n".join(lines)


def _models(labels: dict[str, set[tuple[str, str]]]) -> set[tuple[str, str]]:
    return {model for label, models in labels.items() if label not in NOT_COUNTED for model in models}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(CORPORA), metavar="CORPUS", choices=CORPORA)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--names", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--seconds", type=int, default=60, help="processor time for a model")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not options.tables:
        warnings.simplefilter("ignore")
        wrap()
        warm()
        for corpus in options.only:
            measure(corpus, options)
    known = {corpus: found for corpus in options.only if (found := records(options.folder / f"{corpus}.jsonl"))}
    print(tables(known))


if __name__ == "__main__":
    main()
