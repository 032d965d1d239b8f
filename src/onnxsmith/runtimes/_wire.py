"""Sends values between two processes as a JSON head and raw bytes. Nothing is pickled, so reading cannot run code."""

from __future__ import annotations

import json
import struct
from typing import IO, Any

import ml_dtypes  # noqa: F401 — registers bfloat16 and friends with numpy
import numpy as np

from onnxsmith.base.words import size
from onnxsmith.runtimes.base import Value

Message = list[bytes | memoryview]


class TooLargeError(Exception):
    """Says that a message is larger than its reader accepts. The message was not read."""


def encode(head: dict[str, Any], values: dict[str, Value] | None = None) -> Message:
    """Encodes one message as a list of pieces to write; arrays are not copied."""
    buffers: Message = []
    packed = {name: _pack(value, buffers) for name, value in (values or {}).items()}
    text = json.dumps({"head": head, "values": packed, "sizes": [len(b) for b in buffers]}).encode()
    return [struct.pack("<Q", len(text)), text, *buffers]


def send(stream: IO[bytes], message: Message) -> None:
    """Writes one message."""
    for piece in message:
        stream.write(piece)
    stream.flush()


def receive(stream: IO[bytes], *, most: int = 0) -> tuple[dict[str, Any], dict[str, Value]]:
    """Reads one message of at most `most` bytes; 0 for no limit.

    Raises:
        EOFError: the other process is gone. TooLargeError: the message is larger; the rest of the message is still
        unread.
    """
    (length,) = struct.unpack("<Q", _exactly(stream, 8))
    _fits(length, most)
    message = json.loads(_exactly(stream, length))
    _fits(length + sum(message["sizes"]), most)
    buffers = [_exactly(stream, size) for size in message["sizes"]]
    return message["head"], {name: _unpack(item, buffers) for name, item in message["values"].items()}


def _fits(length: int, most: int) -> None:
    if most and length > most:
        raise TooLargeError(f"the answer has {size(length)}, but the limit is {size(most)}")


def _exactly(stream: IO[bytes], size: int) -> bytearray:
    data = bytearray(size)
    view, read = memoryview(data), 0
    while read < size:
        count = stream.readinto(view[read:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        read += count
    return data


def _pack(value: Value, buffers: Message) -> dict[str, Any]:
    if value is None:
        return {"none": True}
    if isinstance(value, list):
        return {"list": [_pack(item, buffers) for item in value]}
    if value.dtype.kind in "OUS":
        texts = [
            item if isinstance(item, str) else bytes(item).decode("utf-8", "surrogateescape") for item in value.ravel()
        ]
        return {"text": texts, "shape": value.shape}
    array = np.ascontiguousarray(value)
    buffers.append(array.reshape(-1).view(np.uint8).data if array.size else b"")
    return {"dtype": array.dtype.name, "shape": value.shape, "buffer": len(buffers) - 1}


def _unpack(item: dict[str, Any], buffers: list[bytearray]) -> Value:
    if "none" in item:
        return None
    if "list" in item:
        return [_unpack(inner, buffers) for inner in item["list"]]
    if "text" in item:
        array = np.empty(len(item["text"]), dtype=object)
        array[:] = item["text"]
        return array.reshape(item["shape"])
    dtype = np.dtype(item["dtype"])
    return np.frombuffer(buffers[item["buffer"]], dtype=dtype).reshape(item["shape"])
