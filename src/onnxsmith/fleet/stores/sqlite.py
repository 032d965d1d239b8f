"""A store in one SQLite file."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from onnxsmith.fleet.row import Outcome, Row, Summary, unreadable
from onnxsmith.fleet.run_list import Run
from onnxsmith.fleet.stores.base import FORMAT, Store, refused

_TABLES = """
CREATE TABLE IF NOT EXISTS rows
    (key TEXT PRIMARY KEY, outcome TEXT, headline TEXT, problem TEXT, seconds REAL, row BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (name TEXT PRIMARY KEY, at TEXT, run BLOB);
"""
_NAMES = {"rows", "runs", "sqlite_autoindex_runs_1"}
"""What a store holds: two tables, and the index that SQLite makes for the names of runs."""
_WAIT = 60.0
"""Seconds to wait for another writer. A choice: a row is written in a millisecond."""
_AT_ONCE = 500
"""Keys in one question. SQLite takes at least 999 (SQLITE_MAX_VARIABLE_NUMBER)."""


class SqliteStore(Store):
    """One file. A write-ahead log lets others read while one process writes; a killed writer leaves whole rows. It has
    to lie on a disk of this machine: SQLite's log does not work over a network."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        with self._refusing():
            Path(address).absolute().parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(address, timeout=_WAIT, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise

    def _prepare(self) -> None:
        try:
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise unreadable(self.address, str(error)) from error
        if version > FORMAT:
            raise unreadable(self.address, f"it has format {version}; this version of onnxsmith reads {FORMAT}")
        if version == 0:
            others = {name for (name,) in self._database.execute("SELECT name FROM sqlite_master")} - _NAMES
            if others:
                raise unreadable(self.address, f"it is another program's database: it has {min(others)}")
            with contextlib.suppress(sqlite3.OperationalError):  # another process may hold it, and set the mode
                self._database.execute("PRAGMA journal_mode = WAL")
            self._database.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {FORMAT}; COMMIT;")
        self._database.execute("PRAGMA synchronous = NORMAL")

    def known(self, keys: Collection[str]) -> set[str]:
        if len(keys) > _AT_ONCE:
            return self.keys() & set(keys)
        marks = ",".join("?" * len(keys))
        with self._refusing():
            rows = self._database.execute(f"SELECT key FROM rows WHERE key IN ({marks})", list(keys))
            return {key for (key,) in rows}

    def keys(self) -> set[str]:
        with self._refusing():
            return {key for (key,) in self._database.execute("SELECT key FROM rows")}

    def put(self, row: Row) -> None:
        headline = row.headline.encode(errors="replace").decode()  # a file's name may be no text
        values = (row.key, row.outcome.value, headline, row.problem, row.seconds)
        with self._refusing(), self._database:
            self._database.execute(
                "INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?)",
                (*values, zlib.compress(row.to_json().encode())),
            )

    def row(self, key: str) -> Row | None:
        with self._refusing():
            packed = self._database.execute("SELECT row FROM rows WHERE key = ?", [key]).fetchone()
        return None if packed is None else Row.from_json(self._unpacked(packed[0]), self.address)

    def summaries(self, keys: Collection[str]) -> dict[str, Summary]:
        wanted = set(keys)
        question = "SELECT key, outcome, headline, problem, seconds FROM rows"
        with self._refusing():
            if len(wanted) <= _AT_ONCE:
                marks = ",".join("?" * len(wanted))
                rows = self._database.execute(f"{question} WHERE key IN ({marks})", list(wanted))
            else:
                rows = self._database.execute(question)
            return {
                key: Summary(key, Outcome(outcome), headline, problem, seconds)
                for key, outcome, headline, problem, seconds in rows
                if key in wanted
            }

    def put_run(self, run: Run) -> None:
        with self._refusing(), self._database:
            self._database.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?)",
                (run.name, run.at, zlib.compress(run.to_json().encode())),
            )

    def run(self, name: str) -> Run | None:
        with self._refusing():
            packed = self._database.execute("SELECT run FROM runs WHERE name = ?", [name]).fetchone()
        return None if packed is None else Run.from_json(self._unpacked(packed[0]), self.address)

    def run_names(self) -> list[str]:
        with self._refusing():
            return [name for (name,) in self._database.execute("SELECT name FROM runs ORDER BY at, rowid")]

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._database.close()

    def _unpacked(self, packed: bytes) -> str:
        try:
            return zlib.decompress(packed).decode()
        except (zlib.error, UnicodeDecodeError) as error:
            raise unreadable(self.address, str(error)) from error

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise refused(self.address, error) from error
        except (sqlite3.DatabaseError, ValueError) as error:
            raise unreadable(self.address, str(error)) from error
        except OSError as error:
            raise refused(self.address, error) from error
