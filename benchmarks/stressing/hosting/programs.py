"""The hosts: each makes calls of onnxsmith as its kind of program does, and says what it found."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from stressing.hosting import calls, growth, serving
from stressing.hosting.serving import as_tuple
from stressing.hosting.work import Finding, Work, in_rounds

WARM, ROUND = calls.WARM, len(calls.ROUND)


def plain(work: Work, count: int) -> list[Finding]:
    """A program that makes one call after the other."""
    return [work.finding("process", in_rounds(work, count))]


def threads(work: Work, count: int) -> list[Finding]:
    """Four threads that make calls at the same time."""
    import torch

    from stressing.hosting import process_state

    torch.ones(2).sum()

    def all_at_once(first: int, total: int) -> None:
        def some(start: int) -> None:
            for number in range(first + start, first + total, 4):
                work.call(number, alone=False)

        before = process_state.state()
        running = [threading.Thread(target=some, args=(start,)) for start in range(4)]
        for one in running:
            one.start()
        for one in running:
            one.join()
        work.wrong += [f"threads changed: {one}" for one in process_state.changed(before, process_state.state())]

    all_at_once(0, WARM)
    samples = [growth.sample(0, settle=True)]
    for done in range(0, count, ROUND):
        size = min(ROUND, count - done)
        all_at_once(WARM + done, size)
        samples.append(growth.sample(done + size, settle=done + size == count))
    return [work.finding("process", samples)]


def fork(work: Work, count: int) -> list[Finding]:
    """`multiprocessing` forks a process for each five calls, while two threads of the parent make calls, too."""
    warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
    context = multiprocessing.get_context("fork")
    for number in range(WARM):
        work.call(number)
    ended = threading.Event()

    def meanwhile(only: tuple[str, ...]) -> None:
        numbers = [number for number in range(WARM) if calls.at(number)[0] in only]
        while not ended.is_set():
            for number in numbers:
                work.call(number, alone=False)

    def some(first: int, total: int) -> None:
        answer = context.SimpleQueue()
        process = context.Process(target=_forked_simply, args=(work, first, total, answer))
        process.start()
        process.join(3 * work.limit)
        if process.exitcode is None:
            process.kill()
            process.join()
        work.wrong.extend(json.loads(answer.get()) if not answer.empty() else [f"a fork ended with {process.exitcode}"])
        process.close()
        answer.close()

    samples = []
    running = [
        threading.Thread(target=meanwhile, args=(only,)) for only in (("export",), ("inspect", "simplify", "run"))
    ]
    for done in range(0, count, 5):
        if done == 5:
            samples.append(growth.sample(5))
            for one in running:
                one.start()
        some(WARM + done, min(5, count - done))
    ended.set()
    for one in running:
        if one.ident is not None:
            one.join()
    samples.append(growth.sample(count, settle=True))
    return [work.finding("parent", samples, memory=False)]


def _forked_simply(work: Work, first: int, count: int, answer: Any) -> None:
    for number in range(first, first + count):
        work.call(number)
    answer.put(json.dumps(work.wrong))


def _spawned(models: str, order: str, count: int) -> None:
    from stressing.hosting import libraries

    libraries.start(Path(models), order)
    work = Work(Path(models))
    found = work.finding(f"worker {order}", in_rounds(work, count))
    Path(models, f"{order}.json").write_text(json.dumps(found.data()), encoding="utf-8")


def spawn(work: Work, count: int) -> list[Finding]:
    """`multiprocessing` starts two processes anew, one after the other, which live as long as their calls."""
    context = multiprocessing.get_context("spawn")
    before, wrong = growth.sample(0), []
    for order in ("before", "after"):
        process = context.Process(target=_spawned, args=(str(work.models), order, count // 2))
        process.start()
        process.join()
        report = work.models / f"{order}.json"
        if not report.exists():
            wrong.append(f"a worker ended with {process.exitcode}")
            continue
        found = json.loads(report.read_text(encoding="utf-8"))
        print(f"{found['who']}: {found['grown']}")
        wrong += [f"{found['who']}: {said}" for said in found["wrong"]]
        process.close()
    after = growth.sample(count, settle=True)
    kept = [replace(one, descriptors=_without_tracker(one), children=()) for one in (before, after)]
    return [Finding("parent", kept, wrong, memory=False)]


def _without_tracker(one: growth.Sample) -> tuple[str, ...]:
    """Leaves out the pipe of the resource tracker, which `multiprocessing` starts once."""
    return tuple(name for name in one.descriptors if not name.startswith("pipe:"))


class Dataset:
    """A dataset whose items are calls."""

    def __init__(self, work: Work, first: int, count: int) -> None:
        self.work, self.first, self.count = work, first, count
        self.items = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> str:
        self.work.call(self.first + index)
        self.items += 1
        said = [f"worker: {one}" for one in self.work.wrong]
        self.work.wrong.clear()
        sample = growth.of_worker(self.items).data() if self.items % 5 == 0 else None
        return json.dumps([os.getpid(), sample, said])


def loader(work: Work, count: int) -> list[Finding]:
    """A DataLoader of torch with two workers, whose dataset makes calls. The parent makes calls in between."""
    from torch.utils.data import DataLoader

    def epoch(first: int, total: int) -> None:
        held: dict[int, list[growth.Sample]] = {}
        for number, (item,) in enumerate(DataLoader(Dataset(work, first, total), num_workers=2)):  # type: ignore[var-annotated,arg-type]
            pid, data, said = json.loads(item)
            work.wrong.extend(said)
            if data is not None:
                held.setdefault(pid, []).append(growth.Sample(**{name: as_tuple(one) for name, one in data.items()}))
            if number % 5 == 0:
                work.call(first + number)
        for samples in held.values():
            work.wrong.extend(f"worker: {one}" for one in growth.complaints(samples, memory=False))

    for number in range(WARM):
        work.call(number)
    epoch(0, WARM)
    samples = [growth.sample(0, settle=True)]
    for done in range(0, count, 50):
        epoch(WARM + done, min(50, count - done))
        samples.append(growth.sample(min(done + 50, count), settle=True))
    return [work.finding("parent", samples)]


def asynchronous(work: Work, count: int) -> list[Finding]:
    """An event loop: four calls at a time in threads, one of which is cancelled, and one call in the loop itself."""
    from stressing.hosting import process_state

    async def some(first: int) -> None:
        tasks = [asyncio.create_task(asyncio.to_thread(work.call, first + n, alone=False)) for n in range(4)]
        await asyncio.sleep(0.02)
        tasks[first // 5 % 4].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(work.quiet)
        work.call(first + 4)

    async def main() -> list[growth.Sample]:
        for first in range(0, WARM - 2, 5):
            await some(first)
        samples = [growth.sample(0, settle=True)]
        before = process_state.state()
        for done in range(0, count, 5):
            await some(WARM + done)
            if (done + 5) % ROUND == 0:
                samples.append(growth.sample(done + 5, settle=done + 5 >= count))
        work.wrong += [f"tasks changed: {one}" for one in process_state.changed(before, process_state.state())]
        return samples

    return [work.finding("process", asyncio.run(main()))]


HOSTS: dict[str, tuple[Callable[[Work, int], list[Finding]], tuple[str, ...]]] = {
    "plain": (plain, ("before", "after")),
    "threads": (threads, ("before",)),
    "fork": (fork, ("after",)),
    "spawn": (spawn, ("before",)),
    "loader": (loader, ("before",)),
    "asyncio": (asynchronous, ("after",)),
    "jupyter": (serving.jupyter, ("after",)),
    "prefork": (serving.prefork, ("before",)),
}
"""Each host, and whether libraries are imported before or after onnxsmith."""
