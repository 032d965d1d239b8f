"""`onnxsmith guard` recognises pickles by their bytes, whatever the file is called, and takes nothing else for one."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onnxsmith.gate.guard import guard
from onnxsmith.gate.guarding import pickles
from tests.gate.test_guard import archive, found


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_of_every_protocol(tmp_path: Path, protocol: int) -> None:
    for number, value in enumerate(({"a": [1, 2]}, np.zeros(3), "text", 0x1950A86A20F9469CFC6C)):
        file = tmp_path / f"{number}.bin"
        file.write_bytes(pickle.dumps(value, protocol=protocol))
        assert pickles.kind(file) == "pickle", value


def test_what_is_a_pickle_and_what_is_not(tmp_path: Path) -> None:
    large = pickle.dumps({"a": np.zeros(400_000)}, protocol=2)
    magic = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)  # torch.save's, before the weights
    kinds = {
        "archive/data.pkl": archive("archive/data.pkl"), "large": large, "old": magic + magic + bytes(100),
    }  # fmt: skip
    others = {
        "archive/data.txt": archive("data.txt"), "empty": b"", "dot": b".", "text": b"a text, and no more.",
        "zeros": bytes(1000), "first byte": b"\x80" + bytes(100), "protocol": b"\x80\x02" + b"\xff" * 100,
        "json": b'{"a": 1}', "random": np.random.default_rng(0).bytes(4000), "cut archive": archive("a/data.pkl")[:20],
    }  # fmt: skip
    for kind, contents in (("pickle", kinds), ("other", others)):
        for name, content in contents.items():
            file = tmp_path / "w.pt"
            file.write_bytes(content)
            assert pickles.kind(file) == kind, name
            assert found(guard([file])) == (["guard/pickled"] if kind == "pickle" else [])


def test_a_pickle_in_an_archive(tmp_path: Path) -> None:
    """numpy pickles arrays of objects; torch.export keeps the example inputs as a file of torch.save in its archive."""
    objects, numbers = np.array([{"a": 1}], object), np.zeros(4)
    np.save(tmp_path / "objects.npy", objects)
    np.savez(tmp_path / "objects.npz", x=numbers, y=objects)
    np.savez_compressed(tmp_path / "packed.npz", x=numbers, y=objects)
    np.save(tmp_path / "numbers.npy", numbers)
    np.savez(tmp_path / "numbers.npz", x=numbers, y=np.array(["'|O'"]))
    for name, inner in (("nested.pt2", archive("archive/data.pkl")), ("plain.pt2", archive("data.txt"))):
        with zipfile.ZipFile(tmp_path / name, "w") as outer:
            outer.writestr("net/data/sample_inputs/model.pt", inner)
    found_in = {file.name: pickles.kind(file) for file in tmp_path.iterdir()}
    assert {name for name, kind in found_in.items() if kind == "pickle"} == {
        "objects.npy", "objects.npz", "packed.npz", "nested.pt2",
    }  # fmt: skip
    assert len(found_in) == 7


def test_a_pickle_with_the_name_of_a_model(tmp_path: Path) -> None:
    contents = [pickle.dumps({"a": 1}, protocol=number) for number in range(pickle.HIGHEST_PROTOCOL + 1)]
    for content in (*contents, archive("archive/data.pkl")):
        for name in ("m.onnx", "m.onnxtxt", "m.safetensors"):
            (tmp_path / name).write_bytes(content)
            report = guard([tmp_path / name])
            assert found(report) == ["guard/pickled"], name
            assert "runs code when it is loaded" in report.problems[0].why


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "zlib": zlib.compress, "bz2": bz2.compress, "xz": lzma.compress,
    "lzma": lambda content: lzma.compress(content, lzma.FORMAT_ALONE),
}  # fmt: skip


@pytest.mark.parametrize("form", PACKED)
def test_a_compressed_pickle(tmp_path: Path, form: str) -> None:
    file = tmp_path / "w.pkl.gz"
    noise = np.random.default_rng(0).bytes(2**21)  # its start alone is read
    pickled = [pickle.dumps(one, protocol) for one in ({"a": 1}, noise) for protocol in (0, 2, 5) if one != noise]
    for content in (*pickled, pickle.dumps([1, 2, noise]), pickle.dumps(np.zeros(10**6)), archive("a/data.pkl")):
        file.write_bytes(PACKED[form](content))
        assert found(guard([file])) == ["guard/pickled"], content[:40]
    for content in (b"", b"a text.", bytes(10**6), noise, archive("data.txt"), b"PK\x03\x04"):
        file.write_bytes(PACKED[form](content))
        assert not found(guard([file])), content[:40]
    file.write_bytes(PACKED[form](b"a text.")[:4] + bytes(100))
    assert not found(guard([file]))
