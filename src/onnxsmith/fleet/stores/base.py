"""The base class of stores, and how the address of a store is opened."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from onnxsmith.fleet.row import Row, Summary
from onnxsmith.fleet.run_list import Run

FORMAT = 1
"""The format of a store. A later one is refused."""


class Store(ABC):
    """Keeps rows by key, and runs by name. Processes of many machines may use one store at the same time: the row of a
    key is always the same work, so that the last writer wins and harms nobody. A store that this user may not write can
    be read.

    A damaged row counts as absent. `damaged` says why, by the place of the row."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.damaged: dict[str, str] = {}

    @abstractmethod
    def put(self, row: Row) -> None:
        """Keeps a row. Once this returns, the row is not lost by a kill.

        Raises:
            OnnxsmithError: `fleet/store-full`, `fleet/store-refused`.
        """

    @abstractmethod
    def row(self, key: str) -> Row | None:
        """Returns the row of a key, None if there is none, or a damaged one."""

    @abstractmethod
    def summaries(self, keys: Collection[str]) -> dict[str, Summary]:
        """Returns the summaries of the rows that are there, by key."""

    @abstractmethod
    def put_run(self, run: Run) -> None:
        """Keeps a run, in place of one of the same name."""

    @abstractmethod
    def run(self, name: str) -> Run | None:
        """Returns a run by its name, None if there is none."""

    @abstractmethod
    def run_names(self) -> list[str]:
        """Returns the names of the runs, the latest last."""

    @abstractmethod
    def keys(self) -> set[str]:
        """Returns the keys of all rows."""

    def close(self) -> None:  # noqa: B027 — only a database holds files open
        """Closes what the store holds open."""


_open = threading.local()


def opened(address: str) -> Store:
    """Returns the store at an address, opened once in each thread: a folder, `scheme://…`, or an SQLite file.

    Raises:
        OnnxsmithError: `fleet/store` if it is no store, is damaged, or a later version wrote it; `fleet/store-refused`
            if it is not there and cannot be made.
    """
    stores: dict[str, Store] = _open.__dict__.setdefault("stores", {})
    if address not in stores:
        from onnxsmith.fleet.stores.folder import FolderStore
        from onnxsmith.fleet.stores.sqlite import SqliteStore

        stores[address] = FolderStore(address) if is_folder(address) else SqliteStore(address)
    return stores[address]


def is_folder(address: str) -> bool:
    """Whether the address is that of a store in a folder, and not that of an SQLite file."""
    return "://" in address or address.endswith(("/", "\\")) or Path(address).is_dir()


@contextmanager
def closing() -> Iterator[None]:
    """Closes the stores that the block opens in this thread."""
    before = dict(_open.__dict__.setdefault("stores", {}))
    try:
        yield
    finally:
        stores: dict[str, Store] = _open.__dict__["stores"]
        for address in stores.keys() - before.keys():
            stores.pop(address).close()
