"""What a fleet costs beside its cells, and what is lost when its processes are killed.

    PYTHONPATH=src:benchmarks python benchmarks/fleet.py overhead
    PYTHONPATH=src:benchmarks python benchmarks/fleet.py simulate [--models 10000] [--settings 20] [--lost 0.05]
    PYTHONPATH=src:benchmarks python benchmarks/fleet.py real MODELS_FOLDER
    PYTHONPATH=src:benchmarks python benchmarks/fleet.py kills MODELS_FOLDER

`overhead` runs cells whose processes are replaced by nothing, so that all of their time is overhead: temporary folder,
row, store and engine. `simulate` runs cells that only wait, for times with a heavy tail, on workers of Dask that are
killed at random, and counts rows, bytes of the store and the memory of the scheduler. `real` runs four settings on the
models of a folder, with one worker and with two, and tells how good the estimate after a tenth was. `kills` runs them
while the driver, a worker or the scheduler is killed ten times, and compares the table with one that was not stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fleeting.cells import fake_cell, fake_task, no_process

from onnxsmith.base import rooms
from onnxsmith.base.system import usage
from onnxsmith.fleet import cells as cell_lists
from onnxsmith.fleet import driver, step_process, verbs
from onnxsmith.fleet.driver import Job
from onnxsmith.fleet.engines.base import Engine
from onnxsmith.fleet.stores.base import closing, opened

PYTHON = sys.executable
PORT = 18786


def engine(name: str) -> Engine:
    """An engine by its name."""
    return rooms.members("onnxsmith.fleet.engines", Engine)[name]


def overhead(count: int) -> None:
    """Milliseconds of each cell beside its process, one cell after the other."""
    for name in ("local", "dask"):
        for form in ("fleet.sqlite", "rows/"):
            with tempfile.TemporaryDirectory() as folder, closing():
                cells = [fake_cell(number, 1, folder, seconds=0.0) for number in range(count)]
                real, step_process.run = step_process.run, no_process
                try:
                    begin = time.perf_counter()
                    job = Job(cells, opened(f"{folder}/{form}"))
                    driver.compute(job, engine(name), workers=1)
                    passed = time.perf_counter() - begin
                finally:
                    step_process.run = real
                assert len(job.store.keys()) == count
                print(f"{name:6} {form:13} {1000 * passed / count:6.1f} ms a cell, start of the engine included")


@contextmanager
def cluster(workers: int, threads: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler and worker processes, each in a process of its own."""
    dask = [PYTHON, "-m", "dask"]
    environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "20"}
    environment["PYTHONPATH"] = os.pathsep.join(str(Path(one).absolute()) for one in sys.path if one)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    scheduler = subprocess.Popen([*dask, "scheduler", "--port", str(PORT), "--no-dashboard"], **quiet)
    address = f"tcp://127.0.0.1:{PORT}"
    time.sleep(3)
    words = [*dask, "worker", address, "--nworkers", str(workers), "--nthreads", str(threads), "--no-dashboard"]
    nannies = subprocess.Popen([*words, "--memory-limit", "0"], **quiet)
    try:
        yield address, scheduler
    finally:
        for process in (nannies, scheduler):
            process.terminate()
        for process in (nannies, scheduler):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def worker_processes(address: str) -> list[int]:
    """The process ids of the workers of a scheduler."""
    import distributed

    with distributed.Client(address, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


def simulate(models: int, settings: int, lost: float, workers: int, threads: int) -> None:
    """Rows, store traffic and the memory of the scheduler, with workers that are killed."""
    count = models * settings
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder, cluster(workers, threads) as (address, scheduler), closing():
        cells = [fake_cell(at, settings, folder, min(rng.paretovariate(1.2) * 0.0005, 5.0)) for at in range(count)]
        store = f"{folder}/fleet.sqlite"
        job = Job(cells, opened(store), task=fake_task)
        killed, over = [0], threading.Event()

        def kill() -> None:
            """Kills workers so that `lost` of the cells had a worker that died meanwhile, or just after."""
            wanted = max(1, round(lost * count / threads / 50))
            while not over.wait(2.0):
                share = job.progress.computed / count
                if killed[0] < wanted * share:
                    ids = worker_processes(address)
                    if ids:
                        os.kill(rng.choice(ids), signal.SIGKILL)
                        killed[0] += 1

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        begin = time.perf_counter()
        driver.compute(job, engine("dask"), scheduler=address)
        passed = time.perf_counter() - begin
        over.set()
        thread.join()
        peak = usage.HERE.peak(scheduler.pid) or 0
        own = usage.HERE.peak(os.getpid()) or 0
        rows = job.store.keys()
        outcomes = Counter(str(one.outcome) for one in job.store.summaries(rows).values())
        size = sum(file.stat().st_size for file in Path(folder).glob("fleet.sqlite*"))
        begin = time.perf_counter()
        left = set(cell_lists.by_key(cells)) - set(opened(store).summaries(rows))
        resumed = time.perf_counter() - begin
        spent = sum(cell.limits.seconds for cell in cells)
        print(f"{count:,} cells, {workers} workers of {threads} threads, {killed[0]} workers killed")
        print(f"rows {len(rows):,} (each cell exactly one: {len(rows) == count and not left}), {dict(outcomes)}")
        print(
            f"{passed:.0f} s, {1000 * passed / count:.1f} ms a cell (waiting {spent / workers / threads:.0f} s of it)"
        )
        print(f"scheduler {peak / 2**20:.0f} MiB, driver {own / 2**20:.0f} MiB, store {size / 2**20:.1f} MiB")
        print(f"resume of the finished run: {resumed:.1f} s to find that nothing is left")


SETTINGS = """
models = ["{folder}/*.onnx"]
time_limit = 300
[settings.simplify]
steps = ["simplify"]
[settings.check]
steps = ["check"]
check = "--target onnxruntime"
[settings.int8]
steps = ["quantize"]
quantize = "--to int8 --no-time --write-unsure"
[settings.inspect]
steps = ["inspect"]
inspect = "--costs"
"""


def plan_file(models: Path, folder: Path) -> Path:
    """A plan of four settings for the models of a folder."""
    path = folder / "plan.toml"
    path.write_text(SETTINGS.format(folder=models.absolute()))
    return path


def real(models: Path) -> None:
    """Cells of real models: one worker, two workers, and nothing changed."""
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_file(models, Path(folder))
        for workers in (1, 2):
            with closing():
                begin = time.perf_counter()
                settings = verbs.Settings(store=f"{folder}/{workers}.sqlite", workers=workers, name="real")
                progress = run_with_progress(plan, settings)
                seconds[workers] = time.perf_counter() - begin
            estimate = [(then, left) for share, then, left in progress if share >= 0.1][:1]
            for then, left in estimate:
                off = (then + left) / seconds[workers]
                print(f"{workers} workers: {seconds[workers]:.0f} s; expected after a tenth: {off:.2f} of it")
        print(f"two workers are {seconds[1] / seconds[2]:.2f} times as fast as one after the other")
        begin = time.perf_counter()
        subprocess.run(fleet("run", plan, "--store", f"{folder}/2.sqlite", "-q"), check=False)
        print(f"nothing changed: {time.perf_counter() - begin:.1f} s")


def run_with_progress(plan: Path, settings: verbs.Settings) -> list[tuple[float, float, float]]:
    """Runs a plan. Returns the share of the cells, the seconds since the start and the seconds expected to be left, for
    each estimate."""
    kept: list[driver.Job] = []
    real_compute = driver.compute

    def watched(job: driver.Job, *args: object, **more: object) -> None:
        kept.append(job)
        real_compute(job, *args, **more)  # type: ignore[arg-type]

    driver.compute = watched  # type: ignore[assignment]
    try:
        report = verbs.run(plan, settings)
    finally:
        driver.compute = real_compute
    print(report.headline)
    count = len(kept[0].cells)
    return [(done / count, then, left) for done, then, left in kept[0].progress.estimates]


def fleet(*words: object) -> list[str]:
    """The command line."""
    return [PYTHON, "-m", "onnxsmith", "fleet", *map(str, words)]


def kills(models: Path, times: int) -> None:
    """The same table after kills as without: of the driver with its pool, and of the driver, a worker or the scheduler
    of Dask."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_file(models, Path(folder))
        temporary = Path(folder, "temporary")
        temporary.mkdir()
        os.environ["TMPDIR"] = str(temporary)
        calm, store = f"{folder}/calm.sqlite", f"{folder}/killed.sqlite"
        subprocess.run(fleet("run", plan, "--store", calm, "--name", "calm", "-q"), check=False)
        run = fleet("run", plan, "--store", store, "--name", "killed", "-q")
        killed: Counter[str] = Counter()
        while killed.total() < times:
            victim = rng.choice(["driver", "driver of dask", "worker", "scheduler"])
            if not killed_while_running(run, victim, rng.uniform(4, 12)):
                break
            killed[victim] += 1
        print(f"killed: {dict(killed)}")
        subprocess.run(run, check=False)
        compared(calm, store)
        time.sleep(2)
        left = subprocess.run(
            ["pgrep", "-fc", "onnxsmith.fleet.step_host"], capture_output=True, text=True, check=False
        )
        print(f"processes left over: {left.stdout.strip()}; files: {sorted(one.name for one in temporary.iterdir())}")


def killed_while_running(run: Sequence[str], victim: str, after: float) -> bool:
    """Starts a run, kills one of its processes after some seconds, and waits for the end of the driver. Returns False
    if the run ended before."""
    if victim == "driver":
        return stopped(subprocess.Popen(run, start_new_session=True), after)
    with cluster(1, 2) as (address, scheduler):
        process = subprocess.Popen([*run, "--scheduler", address], start_new_session=True)
        if victim == "driver of dask":
            return stopped(process, after + 5)
        try:
            process.wait(after + 5)
        except subprocess.TimeoutExpired:
            if victim == "scheduler":
                scheduler.kill()
            else:
                for worker in worker_processes(address):
                    os.kill(worker, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60 if victim == "scheduler" else 5)
            stopped(process, 0.1)
            return True
        return False


def stopped(process: subprocess.Popen[bytes], after: float) -> bool:
    """Kills a process after some seconds. Returns False if it ended before."""
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def compared(calm: str, store: str) -> None:
    """Prints whether two stores have the same table."""
    with closing():
        tables = []
        for address in (calm, store):
            rows = opened(address)
            run = rows.run(rows.run_names()[-1])
            assert run is not None
            outcomes = rows.summaries(set(run.cells.values()))
            tables.append({place: (outcomes[key].outcome, outcomes[key].problem) for place, key in run.cells.items()})
        different = [place for place in tables[0] if tables[0][place] != tables[1].get(place)]
        print(f"cells {len(tables[0])}, different {len(different)}: {different[:5]}")


def main(words: Sequence[str]) -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["overhead", "simulate", "real", "kills"])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("models"))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--settings", type=int, default=20)
    parser.add_argument("--lost", type=float, default=0.05)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--times", type=int, default=10)
    given = parser.parse_args(words)
    if given.what == "overhead":
        overhead(given.count)
    elif given.what == "simulate":
        simulate(given.models, given.settings, given.lost, given.workers, given.threads)
    elif given.what == "real":
        real(given.folder)
    else:
        kills(given.folder, given.times)


if __name__ == "__main__":
    main(sys.argv[1:])
