"""Makes torchvision's own operators load beside torch's CPU build: `python benchmarks/packages/stand_ins.py`, once.

The package index has torchvision built for CUDA only. Its library asks for CUDA's and for the CUDA parts of torch, of
which its operators for CPUs call nothing. Empty libraries of these names, whose functions return 0, take their place.
Every process of this environment loads them by a `.pth` file, as exporters start processes of their own. Needs Linux,
gcc and nm.
"""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

SITE = Path(sysconfig.get_path("purelib"))
CUDA = VERSION = "libcudart.so.13"
LIBRARIES = ("libc10_cuda.so", "libtorch_cuda.so", CUDA)


def main() -> None:
    """Writes the libraries and the `.pth` file into the environment that runs this program."""
    folder = SITE / "cuda_stand_ins"
    folder.mkdir(exist_ok=True)
    missing = undefined(SITE / "torchvision" / "_C.so")
    for library in LIBRARIES:
        symbols = [name for name, version in missing if (version == VERSION) == (library == CUDA)]
        if library == "libtorch_cuda.so":
            symbols = []  # all are in the first library
        make(folder, library, symbols)
    loads = "; ".join(f"ctypes.CDLL({str(folder / library)!r})" for library in LIBRARIES)
    (SITE / "cuda_stand_ins.pth").write_text(f"import ctypes; {loads}\n")


def undefined(library: Path) -> list[tuple[str, str]]:
    """The symbols of CUDA, and of the CUDA parts of torch, that a library asks for: name and version."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True)
    names = [line.split()[-1] for line in listed.stdout.splitlines() if line.split()[0] == "U"]
    pairs = [(name.partition("@")[0], name.partition("@")[2]) for name in names]
    return [(name, version) for name, version in pairs if version == VERSION or "4cuda" in name]


def make(folder: Path, library: str, symbols: list[str]) -> None:
    """Compiles a library whose functions return 0."""
    source, versions = folder / "empty.c", folder / "versions"
    source.write_text("".join(f"int {name}(void) {{ return 0; }}\n" for name in symbols))
    versions.write_text(f"{VERSION} {{ global: *; }};\n")
    script = [f"-Wl,--version-script={versions}"] if library == CUDA else []
    named = ["-shared", "-nostdlib", "-w", f"-Wl,-soname,{library}", *script, "-o", folder / library]
    subprocess.run(["gcc", *named, source], check=True)
    source.unlink()
    versions.unlink()


if __name__ == "__main__":
    main()
