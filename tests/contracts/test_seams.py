"""Every private name that onnxsmith reaches for is there in the versions that are installed."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil

import pytest

from onnxsmith import seams
from onnxsmith.seams.base import private

HAS_TORCH = importlib.util.find_spec("torch") is not None
MODULES = [
    importlib.import_module(info.name)
    for info in pkgutil.walk_packages(seams.__path__, prefix=f"{seams.__name__}.")
    if not info.ispkg and (HAS_TORCH or not info.name.startswith(f"{seams.__name__}.torch."))
]
NAMES = [
    (module.__name__, path)
    for module in MODULES
    for path in getattr(module, "REACHES", ())
    if HAS_TORCH or not path.startswith("transformers:")  # whose classes are empty where torch is absent
]


@pytest.mark.parametrize(("module", "path"), NAMES, ids=[path for _, path in NAMES])
def test_a_private_name_is_there(module: str, path: str) -> None:
    assert private(path) is not None, f"{module} reaches for {path}, which is gone: less of what it does is done"


def test_every_seam_says_what_it_reaches_for() -> None:
    assert all(hasattr(module, "REACHES") for module in MODULES if not module.__name__.endswith(".base"))
