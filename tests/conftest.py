"""What every test may use."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.runtimes import _web_package
from onnxsmith.runtimes.onnxruntime import available_providers
from tests import forking

settings.register_profile(
    "onnxsmith", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "failing", settings.get_profile("onnxsmith"), phases=[Phase.explicit, Phase.generate]
)  # for mutants: that a case fails is all that is asked, and the smallest example takes minutes to find
settings.load_profile(os.environ.get("ONNXSMITH_HYPOTHESIS", "onnxsmith"))

pytest_plugins = ["tests.tiers.plugin", "tests.tiers.written", "tests.chromium"]

_TESTS = Path(__file__).parent

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
"""Threads of torch that wait sleep. By default they spin, which takes the core from the test beside this one: training
small layers on two busy cores took three to seven times as much processor time."""

os.environ.setdefault(
    _web_package.VARIABLE, str(_TESTS / "deployment" / "bundles" / "clients" / "node_modules" / "onnxruntime-web")
)  # where make test installs it
_HAS_TORCH = importlib.util.find_spec("torch") is not None
_TORCHS = re.compile(
    r"^(?:import|from) (?:torch\b|onnxsmith\.(?:exporter|seams\.torch|runtimes\.torch_eager)\b)", re.MULTILINE
)


def _needs_torch(file: Path) -> bool:
    """Whether a test file needs torch: it stands in the exporter's folder, or imports torch at its top."""
    return file.is_relative_to(_TESTS / "exporter") or _TORCHS.search(file.read_text(encoding="utf-8")) is not None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves out files that need torch where there is none."""
    if _HAS_TORCH or collection_path.suffix != ".py":
        return None
    return True if _needs_torch(collection_path) else None


def pytest_report_header() -> list[str]:
    if _HAS_TORCH:
        return []
    left_out = sum(map(_needs_torch, _TESTS.rglob("test_*.py")))
    return [f"torch is not installed: {left_out} test files that import it are left out, and tests marked `torch`"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what needs torch where there is none."""
    if _HAS_TORCH:
        return
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("torch")])
    items[:] = [item for item in items if not item.get_closest_marker("torch")]


@pytest.fixture(autouse=True)
def _advice_names_what_exists(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test in which a command reports a fix with an option or a verb that does not exist."""
    if "onnxsmith.cli.application" not in sys.modules:
        yield
        return
    from tests import advice

    watch = advice.Watch(monkeypatch)
    yield
    assert not watch.found, watch.found


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test marked `gpu` where its library sees no CUDA device."""
    marker = item.get_closest_marker("gpu")
    if marker is None:
        return
    (library,) = marker.args
    if library == "torch":
        import torch

        if not torch.cuda.is_available():
            pytest.skip(f"torch {torch.__version__} sees no CUDA device")
    elif "CUDAExecutionProvider" not in available_providers()["providers"]:
        pytest.skip("the installed onnxruntime has no CUDA provider")


class Refusal:
    """The problem of a refused block, once the block has ended."""

    problem: Problem


Refused = Callable[[str], AbstractContextManager[Refusal]]


@pytest.fixture(autouse=True)
def same_weights() -> None:
    """Seeds torch, so that a test's random weights do not depend on the tests that its process ran before."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "manual_seed"):
        torch.manual_seed(0)


@pytest.fixture
def compared_once() -> Iterator[None]:
    """Exports are compared with their module once: on the example inputs, at one optimisation level, without planted
    faults. For tests that ask about the graph; a wrong graph still fails."""
    from tests import exports  # imports torch

    with exports.compared_once():
        yield


@pytest.fixture
def forked_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """TorchScript's exporter runs in processes that are forked, where a platform has that: they import nothing anew.
    For tests that ask about its results, not about its processes."""
    from onnxsmith.exporter.strategies import _separate_process

    if sys.platform.startswith("linux"):
        monkeypatch.setattr(_separate_process, "subprocess", forking.in_place_of_subprocess())


@pytest.fixture(scope="session")
def refused() -> Refused:
    """`with refused("model/empty") as refusal:` holds the block to raising that problem."""

    @contextmanager
    def expect(problem_id: str) -> Iterator[Refusal]:
        refusal = Refusal()
        with pytest.raises(OnnxsmithError) as caught:
            yield refusal
        refusal.problem = caught.value.problem
        assert refusal.problem.id == problem_id, str(refusal.problem)

    return expect
