"""Writes the bundle of `--for cpp`: a header in C++17 with a CMake project, for onnxruntime's C++ API."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from pathlib import Path

from onnxsmith.base import folders
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.deployment.bundles import clients, golden_files, templates
from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.forms.base import NUMBERS, Form
from onnxsmith.deployment.bundles.tasks.base import PICTURES, task

_TYPES = {
    "float": ("FLOAT", "float"), "double": ("DOUBLE", "double"), "float16": ("FLOAT16", "Ort::Float16_t"),
    "bfloat16": ("BFLOAT16", "Ort::BFloat16_t"), "bool": ("BOOL", "std::uint8_t"),
    **{name: (name.upper(), f"std::{name}_t") for name in
       ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}  # fmt: skip
"""Maps ONNX dtypes to the end of onnxruntime's enumerator, and to the type of an element in C++."""
_ROOTS = (Path("/usr"), Path("/usr/local"), Path("/opt/onnxruntime"))
"""Lists the folders to search for onnxruntime if the user named none."""
_LINKS = ("libonnxruntime.so", "libonnxruntime.so.1")
_HEADERS = ("include", "include/onnxruntime", "include/onnxruntime/core/session")


class Cpp(Form):
    """Writes model.hpp, verify.cpp and CMakeLists.txt."""

    client = "C++17 with onnxruntime's C++ API"
    folders = ("onnxruntime_root",)
    dtypes = (*NUMBERS, "bfloat16")
    tasks = ("tensors", *PICTURES)

    def write(self, content: Content, folder: OwnPath) -> None:
        manifest = json.loads((folder / golden_files.FOLDER / golden_files.MANIFEST).read_text(encoding="utf-8"))
        types = {name: (f"ONNX_TENSOR_ELEMENT_DATA_TYPE_{end}", kind) for name, (end, kind) in _TYPES.items()}
        chosen = task(content.task)
        chosen.write_cpp(content, folder, types)
        chosen.record(content, folder)
        picture = folder / golden_files.FOLDER / "picture.json"
        described = json.loads(picture.read_text(encoding="utf-8")) if picture.is_file() else None
        values = {**content.values(), "types": types, "manifest": manifest, "picture": described}
        for name in ("model.hpp", "files.hpp", "verify.cpp", "CMakeLists.txt", "README.md"):
            templates.write(folder, name, f"cpp/{name}", **values)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        name = "C++ program"
        for program in ("cmake", "c++"):
            if shutil.which(program) is None:
                return [BundleCheck(name, "not run", f"no {program} is installed")]
        include, library = _headers(content), _library(content)
        if include is None or library is None:
            lacking = "headers" if include is None else "library"
            why = f"the {lacking} of onnxruntime was not found; give its folder with --onnxruntime-root"
            return [BundleCheck(name, "not run", why)]
        with folders.temporary() as build:
            links = _linked(library, OwnPath(build / "lib"))
            steps: tuple[list[str | Path], ...] = (
                [
                    "cmake",
                    "-S",
                    folder,
                    "-B",
                    build,
                    f"-DORT_INCLUDE={include}",
                    f"-DORT_LIBRARY={sorted(links.iterdir())[0]}",
                ],
                ["cmake", "--build", build],
            )
            for words in steps:
                done = clients.run(words, folder=build)
                if done.status != 0:
                    raise _not_compiled(done, include)
            done = clients.run(
                [build / "verify", folder, "--json"],
                folder=build,
                variables={"LD_LIBRARY_PATH": str(links), "DYLD_LIBRARY_PATH": str(links)},
                memory=clients.memory_for(content.model_bytes),
            )
        return [clients.replayed(name, f"compiled here, {library.name}", done, content)]


def _linked(library: Path, folder: OwnPath) -> Path:
    """Makes a folder with links to the library under the names that a linker and a loader look for. The Python package
    has the library only under a name with the full version."""
    folder.mkdir()
    for name in _LINKS if ".so" in library.name else (library.name,):
        (folder / name).symlink_to(library)
    return folder


def _not_compiled(done: clients.Finished, include: Path) -> OnnxsmithError:
    said = f"{done.errors}\n{done.output}".strip()
    at = max(said.find("error"), 0)
    return problem(
        "bundle/client-failed",
        "the C++ code does not compile with the onnxruntime headers on this machine",
        where=str(include),
        why=said[max(at - 200, 0) : at + 1500],
        fix="give the folder of onnxruntime 1.17 or later: --onnxruntime-root FOLDER; nothing was written",
    )


def _headers(content: Content) -> Path | None:
    found = (root / place for root in _roots(content) for place in _HEADERS)
    return next((place for place in found if (place / "onnxruntime_cxx_api.h").is_file()), None)


def _library(content: Content) -> Path | None:
    """Returns the library in the folder of onnxruntime; otherwise the library of the Python package, which has no
    headers."""
    for root in _roots(content):
        found = sorted((root / "lib").glob("libonnxruntime.so*")) + sorted((root / "lib").glob("libonnxruntime.dylib"))
        if found:
            return found[0].resolve()
    for name in ("onnxruntime", "onnxruntime-gpu"):
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name.startswith("libonnxruntime.so"):
                return Path(str(file.locate())).resolve()
    return None


def _roots(content: Content) -> tuple[Path, ...]:
    named = content.clients.get("onnxruntime")
    return (named.absolute(),) if named is not None else _ROOTS
