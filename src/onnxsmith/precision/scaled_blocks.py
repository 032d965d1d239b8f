"""Holds matrices of small whole numbers, in blocks that share a scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
_BYTE = 8
"""The bits of a byte. Numbers of this width are not packed."""
_LARGEST = 127
"""The largest signed number of 8 bits."""


@dataclass(frozen=True)
class Blocks:
    """A matrix [rows, columns] of 4 or 8 `bits`, in blocks of `block` elements of a column, as MatMulNBits stores it.

    An element is its scale times (its whole number minus its zero point). `data` is uint8 [columns, blocks, block *
    bits / 8], with two 4-bit numbers in a byte, the first in its lower half; the last block is padded. `scales` is
    float32 [columns, blocks]. `zeros` is uint8 [columns, blocks], one in a byte; None if all are half of the range.
    """

    rows: int
    bits: int
    data: Array
    scales: Array
    zeros: Array | None

    @property
    def columns(self) -> int:
        """Returns the number of columns."""
        return int(self.data.shape[0])

    @property
    def block(self) -> int:
        """Returns the number of elements in a block."""
        return int(self.data.shape[2]) * 8 // self.bits

    def numbers(self) -> Array:
        """Unpacks the whole numbers: uint8 [columns, blocks * block]."""
        flat = self.data.reshape(self.columns, -1)
        if self.bits == _BYTE:
            return flat
        return np.stack([flat & 0xF, flat >> 4], axis=-1).reshape(self.columns, -1)

    def matrix(self) -> Array:
        """Computes the float matrix: float32 [rows, columns]."""
        zeros = np.float32(1 << (self.bits - 1)) if self.zeros is None else self.zeros.astype(np.float32)[..., None]
        parts = self.numbers().reshape(self.columns, self.data.shape[1], -1).astype(np.float32)
        whole = ((parts - zeros) * self.scales[..., None]).reshape(self.columns, -1)
        return np.ascontiguousarray(whole[:, : self.rows].T)

    def packed_zeros(self) -> Array | None:
        """Returns the zero points as MatMulNBits reads them: uint8 [columns, blocks * bits / 8 rounded up]."""
        return None if self.zeros is None else packed(self.zeros, self.bits)

    def signed(self) -> tuple[Array, Array]:
        """Returns the operands of a DequantizeLinear with axis 0: int4 or int8 [rows, columns], and scales [blocks,
        columns]. Only for blocks without zero points."""
        assert self.zeros is None
        half = 1 << (self.bits - 1)
        whole = (self.numbers()[:, : self.rows].astype(np.int16) - half).astype(np.int8)
        wanted = whole.astype(ml_dtypes.int4) if self.bits < _BYTE else whole
        return np.ascontiguousarray(wanted.T), np.ascontiguousarray(self.scales.T)

    def table(self) -> tuple[Array, Array | None]:
        """Returns the operands of GatherBlockQuantized: a table of `columns` rows with `rows` elements each, uint4
        [columns, rows], or uint8 for 8 bits, and the zero points. 4-bit numbers are not packed into uint8: WebGPU's
        kernel ignores the padding of packed zero points if a row has an odd number of blocks, and OpenVINO refuses
        packed tables."""
        whole = np.ascontiguousarray(self.numbers()[:, : self.rows])
        if self.bits == _BYTE:
            return whole, self.zeros
        return whole.astype(ml_dtypes.uint4), None if self.zeros is None else self.zeros.astype(ml_dtypes.uint4)

    def part(self, chosen: Array, other: Blocks) -> Blocks:
        """Takes these blocks where `chosen` [columns, blocks] is true, else those of `other`, which has the same
        shape."""
        zeros = None
        if self.zeros is not None and other.zeros is not None:
            zeros = np.where(chosen, self.zeros, other.zeros)
        data = np.where(chosen[..., None], self.data, other.data)
        return Blocks(self.rows, self.bits, data, np.where(chosen, self.scales, other.scales), zeros)

    def error(self, matrix: Array) -> Array:
        """Returns the squared error of each block, float32 [columns, blocks]."""
        apart = np.zeros((self.columns, self.data.shape[1] * self.block), np.float32)
        apart[:, : self.rows] = (self.matrix() - matrix).T
        return np.asarray((apart.reshape(self.columns, -1, self.block) ** 2).sum(-1))


def packed(numbers: Array, bits: int) -> Array:
    """Packs whole numbers [n, m] of 4 bits, two in a byte, and pads each row to a full byte. Numbers of 8 bits stay as
    they are."""
    if bits == _BYTE:
        return numbers.astype(np.uint8)
    even = np.pad(numbers, ((0, 0), (0, numbers.shape[1] % 2))).astype(np.uint8)
    return np.asarray(even[:, ::2] | (even[:, 1::2] << 4), np.uint8)


def unpacked(numbers: Array, bits: int, count: int) -> Array:
    """Reverses `packed`: uint8 [n, count]."""
    if bits == _BYTE:
        return numbers[:, :count]
    return np.stack([numbers & 0xF, numbers >> 4], axis=-1).reshape(len(numbers), -1)[:, :count]


def of_columns(matrix: Array) -> Blocks:
    """Quantises a float32 matrix [rows, columns] to 8 bits without zero points. Each column is a block."""
    largest = np.abs(matrix).max(axis=0, initial=0.0)
    scales = np.where(largest == 0, 1.0, largest / _LARGEST).astype(np.float32)
    numbers = np.clip(np.round(matrix / scales) + _LARGEST + 1, 1, None).astype(np.uint8)
    data = np.ascontiguousarray(numbers.T)[:, None, :]
    return Blocks(matrix.shape[0], _BYTE, data, scales[:, None], None)


def joined(parts: list[Blocks]) -> Blocks:
    """Joins the columns of matrices with the same number of rows."""
    first = parts[0]
    if len(parts) == 1:
        return first
    zeros = None if first.zeros is None else np.concatenate([one.zeros for one in parts if one.zeros is not None])
    data = np.concatenate([one.data for one in parts])
    return Blocks(first.rows, first.bits, data, np.concatenate([one.scales for one in parts]), zeros)
