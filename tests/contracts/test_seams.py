"""Every private name that onnxsmith reaches for exists in the installed versions that its lifetime includes."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from importlib import metadata

import pytest

from onnxsmith.base import seams
from onnxsmith.base.library_versions import Lifetime
from onnxsmith.base.seams.base import private

HAS_TORCH = importlib.util.find_spec("torch") is not None
MODULES = [
    importlib.import_module(info.name)
    for info in pkgutil.walk_packages(seams.__path__, prefix=f"{seams.__name__}.")
    if not info.ispkg and (HAS_TORCH or not info.name.startswith(f"{seams.__name__}.torch."))
]
NAMES = [
    (module.__name__, path, getattr(module, "LIFETIMES", {}).get(path, Lifetime()))
    for module in MODULES
    for path in getattr(module, "REACHES", ())
    if HAS_TORCH or not path.startswith("transformers:")  # whose classes are empty where torch is absent
]


@pytest.mark.parametrize(("module", "path", "lifetime"), NAMES, ids=[path for _, path, _ in NAMES])
def test_a_private_name_exists_in_its_lifetime(module: str, path: str, lifetime: Lifetime) -> None:
    wrong = mistaken(path, lifetime)
    assert not wrong, f"{module}: {wrong}; see what the module does without it, and give it a Lifetime in LIFETIMES"


def mistaken(path: str, lifetime: Lifetime) -> str:
    """What is wrong if a name exists outside of its lifetime, or not in it; "" if nothing is."""
    package = path.partition(":")[0].partition(".")[0]
    version = metadata.version(package.replace("_", "-"))
    exists = private(path) is not None
    if exists is lifetime.includes(version):
        return ""
    return f"{package} {version} {'has' if exists else 'lacks'} {path}"


def test_a_name_is_required_in_its_lifetime_only() -> None:
    version = metadata.version("onnx-ir")
    assert not mistaken("onnx_ir:gone", Lifetime(removed="0.1"))
    assert not mistaken("onnx_ir:Model", Lifetime(added="0.1"))
    assert mistaken("onnx_ir:gone", Lifetime()) == f"onnx_ir {version} lacks onnx_ir:gone"
    assert mistaken("onnx_ir:Model", Lifetime(added="99")) == f"onnx_ir {version} has onnx_ir:Model"


def test_a_lifetime_belongs_to_a_name_that_is_reached_for() -> None:
    assert all(set(getattr(module, "LIFETIMES", {})) <= set(getattr(module, "REACHES", ())) for module in MODULES)


def test_every_seam_says_what_it_reaches_for() -> None:
    assert all(hasattr(module, "REACHES") for module in MODULES if not module.__name__.endswith(".base"))
