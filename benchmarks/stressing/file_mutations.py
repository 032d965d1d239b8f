"""Changes files of every format that a command reads, with its structure."""

from __future__ import annotations

import io
import json
import random
import re
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stressing import model_mutations
from stressing.model_mutations import INTEGERS, text

Draw = random.Random
CANARY = "CANARY-6b1f0c"
"""A text that only files outside of a command's folder have."""
BOMB = 300_000_000
"""The bytes to which a compressed array expands. A choice: it would be noticed, and this machine has them."""
PICKLE = b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x12touch ../unpickled\x85R."
"""A pickle that makes a file beside the command's folder."""


def flipped(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Changes some bytes."""
    data, count = bytearray(content or b"\0"), draw.choice((1, 1, 3, 10))
    for _ in range(count):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data), f"{count} other bytes"


def truncated(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Leaves out the end, or a part in the middle."""
    start = draw.randrange(len(content) + 1)
    end = draw.choice((len(content), draw.randrange(start, len(content) + 1)))
    return content[:start] + content[end:], f"without bytes {start} to {end}"


def repeated(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Writes a part once more."""
    start = draw.randrange(len(content) + 1)
    end = min(len(content), start + draw.choice((1, 8, 1000)))
    return content[:end] + content[start:end] + content[end:], f"bytes {start} to {end} twice"


def strange(draw: Draw) -> Any:
    """Returns a value of any type that JSON has."""
    deep: Any = []
    for _ in range(draw.choice((1, 5, 200))):
        deep = [deep] if draw.random() < 0.5 else {"a": deep}
    return draw.choice(
        (None, True, [], {}, [[]], {"": ""}, deep, "x" * 100_000, 1e308, *INTEGERS, text(draw), text(draw))
    )


def _places(value: Any, places: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Lists each place inside a value of JSON: the list or table, and the index or key."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        places.append((value, key))
        _places(value[key], places)
    return places


def changed_value(value: Any, draw: Draw) -> str:
    """Drops, repeats, renames or replaces a value inside a value of JSON."""
    places = _places(value, [])
    if not places:
        return "nothing to change"
    holder, key = draw.choice(places)
    what = draw.choice(("drop", "replace", "replace", "rename", "exchange", "wrap"))
    if what == "drop":
        del holder[key]
    elif what == "replace":
        holder[key] = strange(draw)
    elif what == "wrap":
        holder[key] = [holder[key]] * draw.choice((1, 3))
    elif what == "rename" and isinstance(holder, dict):
        holder[text(draw)] = holder.pop(key)
    else:
        other, place = draw.choice(places)
        holder[key] = json.loads(json.dumps(other[place])) if place in other or isinstance(other, list) else None
    return f"{what} {str(key)[:40]!r}"


def in_json(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Changes values of JSON, or its text: numbers and names that some readers accept."""
    if draw.random() < 0.15:
        odd = draw.choice(
            (b"[" * 100_000, b'{"a":' * 50_000, b"NaN", b"1e999", b'{"a":1,"a":2}', b"9" * 6_000, b'"\\ud800"')
        )
        place = draw.choice((0, content.find(b":") + 1))
        return content[:place] + odd + content[place:] * (place > 0), f"JSON with {odd[:10]!r}"
    try:
        value = json.loads(content)
    except ValueError:
        return flipped(content, draw)
    told = [changed_value(value, draw) for _ in range(draw.choice((1, 1, 2, 4)))]
    return json.dumps(value).encode(), "; ".join(told)


def in_json_lines(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Changes a line of JSON."""
    rows = content.splitlines()
    place = draw.randrange(len(rows))
    rows[place], told = in_json(rows[place], draw)
    return b"\n".join(rows) + b"\n", f"line {place + 1}: {told}"


VALUES = (
    '""', "0", "-1", "1e999", "nan", "inf", "[]", "{}", "true", "9223372036854775808", "1979-05-27T07:32:00Z", "00:00:00",
    '"\\u0000"', '"""\na\n"""', "[" * 500 + "]" * 500, '{ a = { b = 1 } }', '[[[]]]', '"../canary.txt"', '"/"', '"*"',
    '["a", 1]', "0x7fffffffffffffff", '"' + "x" * 100_000 + '"', '"(((((((("', '"\\u202e\\u001b[2J"',
)  # fmt: skip


def in_toml(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Drops, repeats or exchanges a line of TOML, or replaces its value."""
    rows = content.decode(errors="replace").splitlines()
    place = draw.randrange(len(rows)) if rows else 0
    what = draw.choice(("drop", "repeat", "exchange", "value", "value", "value", "key", "table", "deep"))
    head = rows[place].partition("=")[0].strip() if rows else ""
    if what == "drop":
        del rows[place : place + 1]
    elif what == "repeat":
        rows[place:place] = rows[place : place + 1] * 2
    elif what == "exchange":
        draw.shuffle(rows)
    elif what == "value":
        rows[place : place + 1] = [f"{head or 'a'} = {draw.choice(VALUES)}"]
    elif what == "key":
        rows.insert(place, f"{json.dumps(text(draw))} = 1")
    elif what == "table":
        rows.insert(place, draw.choice(("[step]", "[[step]]", "[a.b.c]", "[[model]]", "[settings]")))
    else:
        rows.append(f"deep = {'[' * 5_000}{']' * 5_000}")
    return "\n".join(rows).encode(errors="surrogatepass"), f"TOML line {place + 1}: {what}"


def _header(draw: Draw) -> bytes:
    """Returns an array in the format of numpy whose header is wrong."""
    told = draw.choice((
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': 2, 'shape': (3,), }",
        "{'descr': [('a', '<f4'), ('b', '|O')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<U4000000000', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f4', 'shape': (3,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 100 + "), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': " + "(" * 500 + ")" * 500 + ", }",
        "__import__('os').system('touch ../unpickled')",
    )).encode()  # fmt: skip
    length = struct.pack("<H", draw.choice((len(told), len(told), 5, 65_535)))
    version = draw.choice((b"\x01\x00", b"\x01\x00", b"\x09\x00"))
    return b"\x93NUMPY" + version + length + told + PICKLE


def in_array(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Returns another array, or one with a wrong header."""
    if draw.random() < 0.5:
        return _header(draw), "a wrong header"
    buffer = io.BytesIO()
    strange_arrays: tuple[Any, ...] = (
        np.zeros((0, 3)), np.array("text"), np.array(1j), np.zeros((1,) * 30), np.array([np.nan, np.inf], np.float32),
        np.array(["\x1b[2J", "b\0"]), np.array(2**63 - 1), np.zeros((2, 3, 8, 8), ">f4"), np.zeros(3, "V7"),
    )  # fmt: skip
    array = draw.choice(strange_arrays)
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue(), f"an array of {array.dtype} {array.shape}"


def in_zip(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Changes the members of an archive: names, contents, sizes."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(one, archive.read(one)) for one in archive.namelist()]
    except zipfile.BadZipFile:
        return flipped(content, draw)
    place, packed = draw.randrange(len(members)), zipfile.ZIP_STORED
    name, held = members[place]
    what = draw.choice(("array", "array", "name", "twice", "bomb", "flipped", "none"))
    if what == "array":
        members[place] = (name, in_array(held, draw)[0])
    elif what == "name":
        members[place] = (draw.choice(("../../canary.txt", "/etc/x.npy", text(draw), "y.npy", "x")) or "z", held)
    elif what == "twice":
        members.append(members[place])
    elif what == "bomb":
        shape = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({BOMB // 4},), }}".encode()
        head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(shape)) + shape
        members[place], packed = (name, head + bytes(BOMB)), zipfile.ZIP_DEFLATED
    elif what == "flipped":
        members[place] = (name, flipped(held, draw)[0])
    else:
        members = []
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packed) as archive:
        for name, held in members:
            archive.writestr(zipfile.ZipInfo(name.encode(errors="replace").decode()), held, packed, 1)
    return buffer.getvalue(), f"archive: {what}"


def in_database(path: Path, draw: Draw) -> str:
    """Changes a table, a value or the version of a store."""
    with sqlite3.connect(path) as store:
        names = [name for (name,) in store.execute("select name from sqlite_master where type = 'table'")]
        table = draw.choice(names)
        columns = [row[1] for row in store.execute(f'pragma table_info("{table}")')]
        column, what = draw.choice(columns), draw.choice(("drop", "value", "value", "value", "column", "version"))
        if what == "drop":
            store.execute(f'drop table "{table}"')
        elif what == "column":
            store.execute(f'alter table "{table}" rename column "{column}" to other')
        elif what == "version":
            store.execute(f"pragma user_version = {draw.choice((0, 99, -1))}")
        else:
            value = draw.choice(
                (None, -1, 2**62, 1e308, b"\xff\x00", "", "{}", "[[", text(draw), json.dumps(strange(draw)))
            )
            store.execute(f'update or ignore "{table}" set "{column}" = ?', (value,))
    store.close()
    return f"store: {what} of {table}.{column}"


def in_tensors(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Changes the header of a file of safetensors."""
    size = struct.unpack("<Q", content[:8])[0]
    if draw.random() < 0.3:
        size = draw.choice((0, 2**63, 2**40, len(content), size - 1))
        return struct.pack("<Q", size) + content[8:], f"a header of {size} bytes"
    header, told = in_json(content[8 : 8 + size], draw)
    return struct.pack("<Q", len(header)) + header + content[8 + size :], told


WORDS = re.compile(rb"\w+|[^\w\s]")


def in_text(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Changes words of a text: ONNX text, a list, a program."""
    words = list(WORDS.finditer(content))
    if not words:
        return flipped(content, draw)
    one, other = draw.choice(words), draw.choice(words)
    odd = (b"", other[0], b"99999999999999999999", b"-1", b"{" * 3_000, b"(" * 200, b'"', b"\xff\xfe", one[0] * 9)
    new = draw.choice((*odd, text(draw).encode()))
    return content[: one.start()] + new + content[one.end() :], f"{one[0][:20]!r} is {new[:20]!r}"


BY_SUFFIX: dict[str, Callable[[bytes, Draw], tuple[bytes, str]]] = {
    ".onnx": model_mutations.mutated,
    ".onnxtxt": in_text,
    ".json": in_json,
    ".jsonl": in_json_lines,
    ".toml": in_toml,
    ".npz": in_zip,
    ".npy": in_array,
    ".safetensors": in_tensors,
    ".txt": in_text,
    ".log": in_text,
    ".py": in_text,
}
BYTES = (flipped, truncated, repeated)


def mutate(path: Path, draw: Draw) -> str:
    """Changes a file, or one in a folder. Returns what was changed."""
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file())
        file = draw.choice(files)
        return f"{file.relative_to(path)}: {mutate(file, draw)}"
    content = path.read_bytes()
    if draw.random() < 0.75:
        if content.startswith(b"SQLite"):
            return in_database(path, draw)
        change = BY_SUFFIX.get(path.suffix, draw.choice(BYTES))
    else:
        change = draw.choice(BYTES)
    new, told = change(content, draw)
    path.write_bytes(new)
    return told
