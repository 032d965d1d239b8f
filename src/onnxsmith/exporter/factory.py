"""Loads a torch model from a target: `path/to/file.py:factory` or `package.module:factory`.

The factory takes no arguments. It returns the module, `(module, args)` or `(module, args, kwargs)`; args and kwargs are
example inputs of `forward`. A subclass of `torch.nn.Module` is its own factory.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import onnxsmith
from onnxsmith.base import user_files
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted


@dataclass(frozen=True)
class TorchModel:
    """A module with example inputs. `given` is False if there are no example inputs. `notes` are for the report;
    `limits` (what the module does not do) are for the headline. `names` maps arguments of forward to the graph's names,
    if these differ. `more` are further keyword arguments on which a file is compared."""

    module: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    given: bool = True
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    more: tuple[Mapping[str, Any], ...] = ()


def resolve(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> tuple[str, TorchModel]:
    """Returns the name and the model for the `model` argument of a Python call: a target, or a module. The caller's
    example inputs replace those of the factory.

    Raises:
        OnnxsmithError: those of `load`; `export/arguments` if `kwargs` is no mapping; `export/target-factory` if
            `model` is neither a target nor a module.
    """
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise _no_arguments(kwargs)
    if isinstance(model, str):
        loaded = load(model)
        if args or kwargs:
            loaded = TorchModel(loaded.module, tuple(args), dict(kwargs or {}))
        return model, loaded
    if not is_module(model) or isinstance(model, type):
        raise problem(
            "export/target-factory",
            f"{type(model).__module__}.{type(model).__qualname__} is not a torch module",
            fix="write onnxsmith.export(module, args): pass the module and the arguments separately, not as a tuple"
            if isinstance(model, tuple) and model and is_module(model[0])
            else "pass a torch.nn.Module, or a target such as 'file.py:factory'",
        )
    if isinstance(args, str | Path):
        raise problem(
            "export/arguments",
            f'the second argument has to be the example inputs, not "{args}"',
            where="args",
            fix=f'write onnxsmith.export(model, (x,), output="{args}"), with an example x',
        )
    if not isinstance(args, tuple | list):
        args = (args,)
    given = bool(args or kwargs)
    return type(model).__qualname__, TorchModel(model, tuple(args), dict(kwargs or {}), given)


def _no_arguments(kwargs: Any) -> OnnxsmithError:
    is_path = isinstance(kwargs, str | Path)
    shown = f'"{kwargs}"' if is_path else type(kwargs).__qualname__
    return problem(
        "export/arguments",
        f"the third argument has to be a dictionary of keyword arguments of forward, not {shown}",
        where="kwargs",
        why="in torch.onnx.export the third argument is the file; in onnxsmith.export the file is the argument output"
        if is_path
        else "",
        fix=f"write output={shown}" if is_path else 'write kwargs={"name": value}',
    )


def is_target(text: str) -> bool:
    """Whether the text names a factory, not a model file."""
    before, colon, name = text.rpartition(":")
    return bool(colon and before) and all(part.isidentifier() for part in name.split("."))


def load(target: str) -> TorchModel:
    """Imports the target's factory and calls it.

    Raises:
        OnnxsmithError: `export/target-syntax`, `export/target-import` or `export/target-factory`, with the line of the
            user's code that failed.
    """
    with contextlib.chdir("."):  # a factory that changes the folder moves no file that is written later
        return _call(function(target), target)


def function(target: str) -> Callable[..., Any]:
    """Imports the function, or another callable, that the target names.

    Raises:
        OnnxsmithError: `export/target-syntax`, `export/target-import` or `export/target-factory`.
    """
    if not is_target(target):
        raise problem(
            "export/target-syntax",
            f"{target!r} does not name a function",
            fix=_of_a_file(target) or "write path/to/file.py:function or package.module:function",
        )
    place, _, name = target.rpartition(":")
    module = _from_file(Path(place), target) if place.endswith(".py") else _from_package(place, target)
    return _attribute(module, name, target)


def _of_a_file(target: str) -> str:
    """Returns the fix for a target that is a file without the name of a function; "" if it is no such file."""
    path = Path(target)
    if path.suffix == ".onnx":
        file = pasted(target)
        return (
            f"run `onnxsmith simplify {file} -o simplified.onnx` or `onnxsmith check {file}`: the target is an ONNX "
            "file already, so there is nothing to export"
        )
    if path.suffix == ".py" and path.is_file():
        names = [one.name for one in ast.parse(user_files.read_bytes(path)).body if isinstance(one, ast.FunctionDef)]
        if names:
            return f"name the function that makes the model: {', '.join(f'{target}:{name}' for name in names[:5])}"
    return ""


def _near_file(path: Path) -> str:
    """Returns the Python file whose name is nearest, or where files are looked for."""
    names = [one.name for one in path.parent.glob("*.py")] if path.parent.is_dir() else []
    nearest = near_names(path.name, names, 1)
    if nearest:
        return f"write {pasted(path.parent / nearest[0])} in place of {path}"
    return f"check the path; relative paths start at the current folder, {Path.cwd()}"


class _Compiled(SourceFileLoader):
    """Compiles a file each time. Python's bytecode cache takes a file of the same second and size for the same file."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _from_file(path: Path, target: str) -> ModuleType:
    if not path.is_file():
        raise problem(
            "export/target-import",
            "there is no such file",
            where=str(path.absolute()),
            fix=_near_file(path),
        )
    if (path.absolute().parent / "__init__.py").is_file():  # relative imports need the package's dotted name
        return _from_package(_in_package(path.absolute()), target)
    folder = str(path.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"onnxsmith_target_{path.stem}"
    loader = _Compiled(name, str(path.absolute()))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _import_failed(error, target) from error
    return module


def _in_package(path: Path) -> str:
    """Returns the dotted name of a file in a package. Adds the folder of the outermost package to `sys.path`."""
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        names.insert(0, root.name)
        root = root.parent
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return ".".join(names)


def _from_package(name: str, target: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise _import_failed(error, target) from error


def _installing(error: BaseException, otherwise: str = "") -> str:
    """Returns how to install the module that an import lacked; "" for other errors. torch comes with the packages that
    exporting needs."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    if error.name.partition(".")[0] == "torch" and find_spec("torch") is None:
        return '`pip install "onnxsmith[torch]"`'
    return f"`pip install {error.name}`, if PyPI lists the package under that name{otherwise}"


def _import_failed(error: BaseException, target: str) -> OnnxsmithError:
    lines = user_lines(error)
    through = f" (imported through {', '.join(lines[:-1])})" if len(lines) > 1 else ""
    return broken_package(error, lines) or problem(
        "export/target-import",
        f"importing {target.rpartition(':')[0]!r} failed",
        where=user_line(error),
        why=f"{type(error).__name__}: {error}{through}",
        fix=_installing(error, "; or check the path") or "run the file with python and fix the error",
    )


def broken_package(error: BaseException, lines: Sequence[str] = ()) -> OnnxsmithError | None:
    """Returns the problem of a transformers class that cannot be imported because a package that it needs is broken;
    None for any other error."""
    text = " ".join(f"{error}".split())
    if not re.search(r"Could not import|Failed to import transformers", text):
        return None
    causes = list(_causes(error))
    return problem(
        "export/transformers-import",
        "transformers cannot import the class of this model",
        where=lines[-1] if lines else "",
        why=f"{text}, because of {type(causes[-1]).__name__}: {causes[-1]}"[:600] if causes else text[:600],
        fix="a package that the class needs, often torchvision, does not match the installed torch: `python -c 'import "
        "torchvision'` shows the error; install the matching version, or uninstall the package",
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    inner = error.__cause__ or error.__context__
    while inner is not None:
        yield inner
        inner = inner.__cause__ or inner.__context__


def user_line(error: BaseException) -> str:
    """Returns `file:line` of the innermost frame in the user's own code, outside of installed packages and this
    package."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    lines = user_lines(error)
    return lines[-1] if lines else ""


def user_lines(error: BaseException) -> list[str]:
    """Returns `file:line` of every frame in the user's own code, the innermost last."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno}" for frame in frames if not is_installed(frame.filename)]


def model_line(error: BaseException) -> str:
    """Returns `file:line` of the innermost frame in a model's code: the user's own, or that of a package that is no
    tool."""
    frames = traceback.extract_tb(error.__traceback__)
    inner = next((f for f in reversed(frames) if is_models(f.filename)), None)
    return f"{inner.filename}:{inner.lineno}" if inner is not None else ""


def model_frame(frame: FrameType | None, until: CodeType | None = None) -> str:
    """Returns `file:line` of the innermost frame in a model's code, from this frame outwards: the user's own, or that
    of a package that is no tool. Stops at the frame that runs the code `until`."""
    while frame is not None and frame.f_code is not until:
        file = frame.f_code.co_filename
        if is_models(file):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def place(where: str) -> tuple[str, int]:
    """Splits `file:line`; the line is 0 if there is none."""
    file, _, line = where.rpartition(":")
    return file, int(line) if line.isdigit() else 0


_TOOLS = re.compile(r"(site|dist)-packages/(torch|functorch|torchgen|onnx\w*|numpy|sympy|networkx|mpmath)/")
"""Matches files of packages that compute and trace models; no model's own code is in them."""


def is_models(filename: str) -> bool:
    """Whether a source file may hold a model's code: a file of the user, or of a package that is no tool."""
    path = filename.replace("\\", "/")
    packaged = "site-packages/" in path or "dist-packages/" in path
    return not is_installed(filename) or (packaged and _TOOLS.search(path) is None and not _is_own(path))


def is_installed(filename: str) -> bool:
    """Whether a source file belongs to an installed package, to Python, or to this package, not to the user."""
    path = filename.replace("\\", "/")
    return (
        "site-packages" in path
        or _is_own(path)
        or path.startswith(("<frozen", "<string>"))
        or f"/lib/python{sys.version_info[0]}." in path
    )


def _is_own(path: str) -> bool:
    return path.startswith(str(Path(onnxsmith.__file__).parent).replace("\\", "/"))


def undefined(module: str, name: str, target: str, defined: Sequence[str]) -> OnnxsmithError:
    """Returns the error that a module does not define what the target names; the fix lists what it defines."""
    nearest = near_names(name, defined, 1)
    return problem(
        "export/target-factory",
        f"{module!r} has no {name!r}",
        where=target,
        fix=f"{f'write {nearest[0]} in place of {name}; ' if nearest else ''}the file or module defines: "
        f"{', '.join(defined) or 'nothing that can be called'}",
    )


def _attribute(module: ModuleType, name: str, target: str) -> Callable[[], Any]:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
            own = [n for n in public if getattr(vars(module)[n], "__module__", None) == module.__name__]
            raise undefined(module.__name__.removeprefix("onnxsmith_target_"), name, target, own or public)
        found = getattr(found, part)
    if not callable(found):
        raise problem("export/target-factory", f"{name!r} is not callable", where=target, fix="name a function")
    return found  # type: ignore[no-any-return]


def _call(factory: Callable[[], Any], target: str) -> TorchModel:
    if is_module(factory) and not isinstance(factory, type):
        return TorchModel(factory, given=False)
    _check_arity(factory, target)
    try:
        made = factory()
    except OnnxsmithError:
        raise
    except (Exception, SystemExit) as error:
        raise broken_package(error, user_lines(error)) or problem(
            "export/target-factory",
            "the factory raised an error",
            where=user_line(error) or target,
            why=f"{type(error).__name__}: {error}",
            fix=_installing(error) or "call the factory in python and fix the error",
        ) from error
    return as_model(made, target)


def _check_arity(factory: Callable[[], Any], target: str) -> None:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # a built-in function has no signature to check
        return
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if needed:
        code = getattr(factory, "__code__", None)
        raise problem(
            "export/target-factory",
            f"the factory requires the arguments {', '.join(needed)}",
            where=f"{code.co_filename}:{code.co_firstlineno}" if code else target,
            why="a factory is called without arguments",
            fix="give its parameters defaults, or write a function without parameters that calls it",
        )


def as_model(made: Any, target: str) -> TorchModel:
    """Turns the return value of a factory into a model with example inputs.

    Raises:
        OnnxsmithError: `export/target-factory` if the value is neither a module nor a tuple that starts with a module.
    """
    if is_module(made):
        return TorchModel(made, given=False)
    if isinstance(made, tuple) and made and is_module(made[0]) and len(made) <= 3:
        args = made[1] if len(made) > 1 else ()
        kwargs = made[2] if len(made) > 2 else {}
        if isinstance(args, Mapping) and len(made) == 2:  # (module, kwargs)
            args, kwargs = (), args
        args = tuple(args) if isinstance(args, tuple | list) else (args,)
        if isinstance(kwargs, Mapping):
            return TorchModel(made[0], args, dict(kwargs))
    raise problem(
        "export/target-factory",
        f"the factory returned {type(made).__module__}.{type(made).__qualname__}",
        where=target,
        why="a factory returns a torch module, alone or with its example inputs",
        fix="return module, or (module, args), or (module, args, kwargs)",
    )


def is_module(value: Any) -> bool:
    """Whether the value is a torch module (instance or class). Does not import torch."""
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    return any(kind.__module__ == "torch.nn.modules.module" and kind.__name__ == "Module" for kind in kinds)
