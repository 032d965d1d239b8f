"""Deferred imports: a slow module of another library loads at the first use of a name in it."""

from __future__ import annotations

import subprocess
import sys

import pytest

START = """
import sys
from onnxsmith.base import deferred_imports
deferred_imports.begin()
deferred_imports.begin()
import onnx_ir as ir
import sympy
import sympy as again
assert "sympy.core" not in sys.modules
loaded = []
"""


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", START + code], check=True)


@pytest.mark.parametrize(
    "use",
    [
        "assert str(ir.SymbolicDim('n') + 1) == 'n + 1'",
        "assert sympy.Symbol('n').name == 'n'",
        "from sympy import Symbol",
        "import sympy.core; assert sympy.Symbol",
        "from sympy.core import Symbol; assert sympy.gcd(4, 6) == 2",
        "assert 'Symbol' in dir(sympy)",
        "import importlib; importlib.reload(sympy)",
    ],
)
def test_the_first_use_loads_it(use: str) -> None:
    run(f"{use}\nassert 'sympy.core' in sys.modules")


def test_looking_at_a_module_does_not_load_it() -> None:
    run("assert sympy.__name__ == 'sympy' and sympy.__spec__.name == 'sympy' and not hasattr(sympy, '__wrapped__')")
    run("import importlib.util; assert importlib.util.find_spec('sympy')\nassert 'sympy.core' not in sys.modules")


def test_an_unknown_name_is_an_attribute_error() -> None:
    run("assert not hasattr(sympy, 'nothing_of_this_name')")


def test_an_action_waits_for_the_module() -> None:
    run(
        """
with deferred_imports.when_loaded("sympy", lambda: loaded.append(1)):
    assert not loaded
    sympy.Symbol
    assert loaded == [1]
with deferred_imports.when_loaded("sympy", lambda: loaded.append(2)):
    assert loaded == [1, 2]
with deferred_imports.when_loaded("onnx_ir._symbolic_shapes", lambda: loaded.append(3)):
    pass
ir.SymbolicDim("n") + 1
assert loaded == [1, 2]
"""
    )


def test_expressions_of_shapes_are_read_when_the_module_loads_during_a_walk() -> None:
    run(
        """
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
text = '<ir_version: 10, opset_import: ["": 20]> g (float[a] x, float[b] z) => (float[n] y) '
model = from_text(text + '{ s = Add(x, z)\\n y = Concat<axis = 0>(s, s) }')
model, trouble = inferred(model)
assert trouble is None
assert "Broadcast" in str(model.graph.node(0).outputs[0].shape), model.graph.node(0).outputs[0].shape
"""
    )
