"""The public face, frozen: whoever changes a name or a signature here changes it for everybody who imports it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import pytest

import onnxsmith

NAMES = [
    "OnnxsmithError",
    "Problem",
    "Report",
    "Result",
    "Save",
    "Verdict",
    "Verify",
    "__version__",
    "bench",
    "bisect",
    "build",
    "bundle",
    "check",
    "compare",
    "diagnose",
    "diff",
    "doctor",
    "dump",
    "edit",
    "explain",
    "export",
    "inspect",
    "load",
    "merge",
    "onnx_op",
    "prune",
    "quantize",
    "reduce",
    "register",
    "rewrite",
    "run",
    "save",
    "shrink",
    "simplify",
    "split",
    "verify_record",
    "view",
]

SIGNATURES = {
    "bench": (
        "(*models: 'Any', subjects: 'Sequence[str]' = (), inputs: 'Mapping[str, Any] | Sequence[str]' = (), "
        "sizes: 'Sizes | None' = None, batches: 'Sequence[int]' = (), batch_name: 'str' = '', "
        "threads: 'Sequence[int]' = (), profile: 'bool' = False, save: 'str | Path | None' = None, "
        "against: 'str | Path | None' = None, allow: 'float' = 0.05, any_machine: 'bool' = False, "
        "seconds: 'float' = 20.0, tolerance: 'float | None' = None, seed: 'int' = 0) -> 'Result'"
    ),
    "bisect": (
        "(source: 'Source', output: 'str | Path | None' = None, *, to: 'str' = 'float16', "
        "tolerance: 'float | None' = None, keep: 'Iterable[str]' = (), inputs: 'Sequence[str]' = (), "
        "sizes: 'Sizes | None' = None, only_given: 'bool' = False, runtime: 'str | None' = None, "
        "any_runtime: 'bool' = False, model: 'str | Path | None' = None, tries: 'int | None' = None, "
        "seed: 'int' = 0) -> 'Result'"
    ),
    "build": (
        "(output: 'str | Path | None' = None, *, opset: 'int' = 21, imports: 'Mapping[str, int] | None' = None, "
        "name: 'str | None' = None, verify: 'bool' = True, "
        "save: 'Save' = Save(external_data=None, write_unsure=False)) -> 'Builder'"
    ),
    "bundle": (
        "(source: 'Source', folder: 'str | Path', *, form: 'str', task: 'str' = 'tensors', "
        "processing: 'Mapping[str, Any] | None' = None, settings: 'str | Path | None' = None, "
        "licence: 'str | Path | None' = None, name: 'str | None' = None, inputs: 'Inputs' = (), "
        "dim_ranges: 'Mapping[str, tuple[int, int, int]] | tuple[str, ...]' = (), runtime: 'str | None' = None, "
        "seed: 'int' = 0, tolerance: 'float | None' = None, clients: 'Mapping[str, str | Path] | None' = None, "
        "variants: 'Mapping[str, str | Path] | tuple[str, ...]' = (), force: 'bool' = False) -> 'Result'"
    ),
    "check": (
        "(model: 'Source', targets: 'Sequence[str]' = ('all',), output: 'str | Path | None' = None, *, "
        "fix: 'bool' = False, inputs: 'Inputs' = (), verify: 'Verify' = Verify(runtime=None, seed=0, "
        "tolerance=None, sizes=(), free=(), thorough=False), "
        "save: 'Save' = Save(external_data=None, write_unsure=False), time_limit: 'float' = 60.0) -> 'Result'"
    ),
    "compare": (
        "(reference: 'Any', candidate: 'Any', *, inputs: 'Inputs' = (), sizes: 'Sizes | None' = None, "
        "runtime: 'str | None' = None, generate: 'bool' = True, seed: 'int' = 0, "
        "per_layer: 'bool | LayerOptions' = False, tolerance: 'float | None' = None, "
        "worst_input: 'str | Path | None' = None, start: 'Sequence[Any]' = (), end: 'Sequence[Any]' = (), "
        "steps: 'int' = 0, state: 'Sequence[str]' = (), free: 'Sequence[str]' = (), "
        "thorough: 'bool' = False) -> 'Result'"
    ),
    "diagnose": (
        "(model: 'Any', args: 'Sequence[Any]' = (), kwargs: 'Mapping[str, Any] | None' = None, *, "
        "inputs: 'Sequence[str]' = (), dynamic: 'Dynamic' = None, opset: 'int | None' = None) -> 'Result'"
    ),
    "diff": "(old: 'Source', new: 'Source', *, ignore: 'Iterable[str]' = ()) -> 'Result'",
    "doctor": "(model: 'str | Path | None' = None) -> 'Report'",
    "dump": (
        "(source: 'Source', output: 'str | Path | None' = None, *, tensors: 'Sequence[str]' = (), "
        "inputs: 'Mapping[str, Any] | Sequence[str]' = (), runtime: 'str | None' = None, "
        "sizes: 'Sizes | None' = None, seed: 'int' = 0, statistics: 'bool' = True, "
        "budget: 'int' = 1073741824) -> 'Result'"
    ),
    "edit": (
        "(source: 'Source', output: 'str | Path | None' = None, *, inputs: 'Inputs' = (), "
        "verify: 'Verify | bool' = True, save: 'Save' = Save(external_data=None, write_unsure=False), "
        "record: 'str | Path | None' = None, keep_unused: 'bool' = False, "
        "write_patch: 'str | Path | None' = None) -> 'Edit'"
    ),
    "explain": "(id: 'str', model: 'Source | None' = None) -> 'Report'",
    "export": (
        "(model: 'Any', args: 'Sequence[Any]' = (), kwargs: 'Mapping[str, Any] | None' = None, *, "
        "output: 'str | Path | BinaryIO | None' = None, inputs: 'Sequence[str]' = (), "
        "dynamic: 'Dynamic' = None, opset: 'int | None' = None, target: 'str | None' = None, "
        "input_names: 'Sequence[str]' = (), "
        "output_names: 'Sequence[str]' = (), drop_unused: 'bool' = False, weights: 'bool' = True, "
        "simplify: 'bool' = True, strategy: 'str | None' = None, as_traced: 'bool' = False, "
        "state: 'str | Sequence[str] | None' = None, "
        "task: 'str | None' = None, trust_remote_code: 'bool' = False, "
        "custom_translation_table: 'Mapping[Any, Any] | None' = None, "
        "verify: 'Verify | bool' = True, "
        "save: 'Save' = Save(external_data=None, write_unsure=False)) -> 'Result'"
    ),
    "inspect": (
        "(source: 'Source', *, nodes: 'bool' = False, tensors: 'bool' = False, text: 'bool' = False, "
        "name: 'str | None' = None, costs: 'bool' = False, sizes: 'Sizes | None' = None, "
        "weights: 'str | Path | None' = None, program: 'bool' = False) -> 'Report'"
    ),
    "load": "(source: 'Source') -> 'ir.Model'",
    "merge": (
        "(first: 'Source', second: 'Source', output: 'str | Path | None' = None, *, "
        "wires: 'Mapping[str, str] | None' = None, keep: 'bool' = False, prefixes: 'tuple[str, str]' = ('', ''), "
        "verify: 'Verify | bool' = True, "
        "save: 'Save' = Save(external_data=None, write_unsure=False)) -> 'Result'"
    ),
    "onnx_op": (
        "(name: 'str', *inputs: 'torch.Tensor | None', like: 'torch.Tensor | None' = None, "
        "dtype: 'torch.dtype | None' = None, shape: 'Sequence[int | torch.SymInt] | None' = None, "
        "version: 'int | None' = None, metadata: 'Mapping[str, str] | None' = None, "
        "**attributes: 'Any') -> 'torch.Tensor'"
    ),
    "prune": (
        "(source: 'Source', output: 'str | Path | None' = None, *, share: 'str | float | None' = None, "
        "by: 'str' = 'norm', saliency: 'str | Path | Mapping[str, Any] | None' = None, all_together: 'bool' = False, "
        "multiple: 'int | None' = None, keep: 'Iterable[str]' = (), data: 'Any' = None, "
        "calibration: 'Any' = None, metric: 'Any' = None, decode: 'Any' = None, preprocess: 'Any' = None, budget: "
        "'str | float | None' = None, keep_list: 'str | Path | None' = None, samples: 'int | None' = None, "
        "evaluations: 'int' = 12, write_unsure: 'bool' = False, measure_time: 'bool' = True, "
        "sizes: 'Sizes | None' = None, seed: 'int' = 0) -> 'Result'"
    ),
    "quantize": (
        "(source: 'Source', output: 'str | Path | None' = None, *, to: 'str' = 'auto', data: 'Any' = None, "
        "calibration: 'Any' = None, metric: 'Any' = None, decode: 'Any' = None, preprocess: 'Any' = None, budget: "
        "'str | float' = '1%', keep: 'str | Iterable[str]' = (), keep_list: 'str | Path | None' = None, target: 'str | "
        "None' = None, samples: 'int | None' = None, evaluations: 'int' = 20, allow_slower: 'bool' = False, "
        "write_unsure: 'bool' = False, "
        "measure_time: 'bool' = True, sizes: 'Sizes | None' = None, ranges: 'Ranges | Iterable[str]' = (), "
        "seed: 'int' = 0) -> 'Result'"
    ),
    "reduce": (
        "(source: 'Source', output: 'str | Path | None' = None, *, check: 'str | Check | Function', "
        "inputs: 'Mapping[str, Any] | Sequence[str] | None' = None, sizes: 'Sizes | None' = None, "
        "status: 'int | None' = None, anonymise: 'bool' = False, time_limit: 'float | None' = None, "
        "seed: 'int' = 0) -> 'Result'"
    ),
    "register": (
        "(target: 'Target', translation: 'Translated | Sequence[Translated] | None' = None, *, "
        "deliver: 'str' = 'operators', domain: 'str' = 'custom', name: 'str | None' = None) -> 'Any'"
    ),
    "rewrite": "(kind: 'type') -> 'Callable[[F], F]'",
    "run": (
        "(source: 'Source', inputs: 'Mapping[str, Any] | Sequence[str]' = (), *, "
        "runtime: 'str | None' = None, provider: 'str' = 'cpu', output: 'str | Path | None' = None, "
        "random: 'bool' = False, sizes: 'Sizes | None' = None, seed: 'int' = 0) -> 'Result'"
    ),
    "save": "(model: 'ir.Model', target: 'str | Path', *, external_data: 'bool | None' = None) -> 'list[Path]'",
    "shrink": "(network: 'nn.Module', kept: 'str | Path | Mapping[str, Mapping[str, list[int]]]') -> 'None'",
    "simplify": (
        "(source: 'Source', output: 'str | Path | None' = None, *, only: 'Iterable[str]' = (), "
        "skip: 'Iterable[str]' = (), exactness: 'str | None' = None, opset: 'int | str | None' = None, "
        "target: 'str | None' = None, contrib: 'bool' = False, inline_functions: 'bool' = False, "
        "fix_defaults: 'bool' = False, set_dim: 'Iterable[str]' = (), keep_open: 'Iterable[str]' = (), "
        "keep_output: 'Iterable[str]' = (), drop_output: 'Iterable[str]' = (), "
        "max_growth: 'float | None' = None, inputs: 'Inputs' = (), explain: 'bool' = False, diff: 'bool' = False, "
        "why: 'Iterable[str]' = (), verify: 'Verify | bool' = True, "
        "save: 'Save' = Save(external_data=None, write_unsure=False)) -> 'Result'"
    ),
    "split": (
        "(source: 'Source', folder: 'str | Path', *, into: 'int | None' = None, at: 'Iterable[Any]' = (), "
        "nodes: 'bool' = False, by_nodes: 'bool' = False, verify: 'Verify | bool' = True, "
        "save: 'Save' = Save(external_data=None, write_unsure=False)) -> 'Result'"
    ),
    "verify_record": "(file: 'str | Path', *, replay: 'bool' = True) -> 'Result'",
    "view": (
        "(model: 'Source', new: 'Source | None' = None, *, output: 'str | Path | None' = None, "
        "reports: 'Sequence[str | Path | Report]' = (), svg: 'str | Path | None' = None, "
        "png: 'str | Path | None' = None, module: 'str' = '') -> 'Result'"
    ),
}


def of_torch(names: Iterable[str]) -> list[object]:
    """The names as parameters; those whose home imports torch are marked so."""
    at_home = {"onnx_op", "register", "rewrite"}
    return [pytest.param(name, marks=[pytest.mark.torch] if name in at_home else []) for name in names]


def test_names() -> None:
    assert onnxsmith.__all__ == NAMES
    assert dir(onnxsmith) == NAMES


@pytest.mark.torch
def test_every_function_is_frozen() -> None:
    functions = {name for name in onnxsmith.__all__ if inspect.isfunction(getattr(onnxsmith, name))}
    assert functions == set(SIGNATURES)


@pytest.mark.parametrize("name", of_torch(SIGNATURES))
def test_signatures(name: str) -> None:
    assert str(inspect.signature(getattr(onnxsmith, name))) == SIGNATURES[name]


@pytest.mark.parametrize("name", of_torch(name for name in NAMES if name != "__version__"))
def test_every_name_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(onnxsmith, name))


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'exprot'"):
        onnxsmith.exprot  # noqa: B018


@pytest.mark.torch
def test_a_verb_stays_a_function_when_its_rooms_are_imported() -> None:
    import onnxsmith.exporter.export
    import onnxsmith.optimizer.simplify
    import onnxsmith.verification.run
    import onnxsmith.viewer.inspection.inspect

    for name in SIGNATURES:
        assert callable(getattr(onnxsmith, name))


def test_importing_it_imports_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys, json, onnxsmith; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    env = {**os.environ, "PYTHONPATH": str(Path(onnxsmith.__file__).parent.parent)}
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, check=True)
    heavy = {"torch", "onnxruntime", "onnx", "onnx_ir", "numpy", "typer", "rich", "pydantic", "jinja2", "PIL"}
    assert not heavy & set(json.loads(found.stdout))


def test_the_package_is_typed() -> None:
    assert (files("onnxsmith") / "py.typed").is_file()
