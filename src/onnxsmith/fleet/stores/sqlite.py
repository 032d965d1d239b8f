"""A store in one SQLite file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from onnxsmith.base import folders
from onnxsmith.fleet.row import Row, Summary
from onnxsmith.fleet.run_list import Run
from onnxsmith.fleet.store_problems import damaged, foreign, refuse_format, refused
from onnxsmith.fleet.stores.base import FORMAT, Store

_TABLES = """
CREATE TABLE IF NOT EXISTS rows
    (key TEXT PRIMARY KEY, outcome TEXT, headline TEXT, problem TEXT, seconds REAL, row BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (name TEXT PRIMARY KEY, at TEXT, run BLOB);
"""
_COLUMNS = {
    "rows": ("key", "outcome", "headline", "problem", "seconds", "row"),
    "runs": ("name", "at", "run"),
}
"""The columns of the tables."""
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
        self._stack = contextlib.ExitStack()
        file = Path(address).absolute()
        with self._refusing():
            if file.exists() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
                self._database = self._readable(file)
                return
            file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(address, timeout=_WAIT, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise

    def _readable(self, file: Path) -> sqlite3.Connection:
        """Opens a file that this user may not write. Without a log nobody writes, and the file is read as it is.
        A log needs a place for its index: where the folder takes none, the file and its log are copied."""
        log = file.with_name(f"{file.name}-wal")
        if not log.exists():
            return self._reading(file, "mode=ro&immutable=1")
        with contextlib.suppress(sqlite3.OperationalError):
            return self._reading(file, "mode=ro")
        copy = self._stack.enter_context(folders.temporary())
        for one in (file, log):
            folders.copy(one, folders.OwnPath(copy / one.name))
        return self._reading(copy / file.name, "mode=rw")

    def _reading(self, file: Path, how: str) -> sqlite3.Connection:
        database = sqlite3.connect(f"{file.as_uri()}?{how}", timeout=_WAIT, check_same_thread=False, uri=True)
        try:
            if self._version(database) == 0:
                raise foreign(self.address, "the database has no tables of rows and runs")
            database.execute("PRAGMA query_only = 1")
        except BaseException:
            database.close()
            raise
        return database

    def _prepare(self) -> None:
        """Makes the tables of a new file."""
        if self._version(self._database) == 0:
            with contextlib.suppress(sqlite3.OperationalError):  # another process may hold it, and set the mode
                self._database.execute("PRAGMA journal_mode = WAL")
            self._database.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {FORMAT}; COMMIT;")
        self._database.execute("PRAGMA synchronous = NORMAL")

    def _version(self, database: sqlite3.Connection) -> int:
        """Returns the format of a store, 0 for a file without tables.

        Raises:
            OnnxsmithError: `fleet/store` for the file of another program or of a later version, or a damaged one.
        """
        (version,) = database.execute("PRAGMA user_version").fetchone()
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        columns = [name for table in _COLUMNS for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
        has_tables = {*_COLUMNS} <= names
        if names - _NAMES and not has_tables:
            raise foreign(
                self.address, f"the database belongs to another program, because it has the table {min(names - _NAMES)}"
            )
        of_later = has_tables and version > FORMAT
        if (names or version) and not of_later and columns != [name for listed in _COLUMNS.values() for name in listed]:
            raise foreign(self.address, f"the tables have other columns: {', '.join(columns) or 'none'}")
        if names:
            refuse_format(self.address, version, FORMAT)
        return int(version)

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
        if packed is None:
            return None
        try:
            row = Row.from_json(zlib.decompress(packed[0]).decode())
            if row.key != key:
                raise ValueError(f"the entry has the row of another key: {row.key}")
        except (zlib.error, ValueError, TypeError) as error:
            self._note_damaged(key, error)
            return None
        return row

    def summaries(self, keys: Collection[str]) -> dict[str, Summary]:
        wanted = set(keys)
        question = "SELECT key, outcome, headline, problem, seconds FROM rows"
        with self._refusing():
            if len(wanted) <= _AT_ONCE:
                marks = ",".join("?" * len(wanted))
                rows = self._database.execute(f"{question} WHERE key IN ({marks})", list(wanted))
            else:
                rows = self._database.execute(question)
            listed = [row for row in rows if row[0] in wanted]
        summaries = {}
        for values in listed:
            try:
                summaries[values[0]] = Summary.read(values)
            except ValueError as error:
                self._note_damaged(values[0], error)
        return summaries

    def _note_damaged(self, key: str, error: Exception) -> None:
        self.damaged[f"{self.address}, key {key}"] = str(error)

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
            names = [name for (name,) in self._database.execute("SELECT name FROM runs ORDER BY at, rowid")]
        if any(not isinstance(name, str) for name in names):
            raise damaged(self.address, "the name of a run is not a text")
        return names

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._database.close()
        self._stack.close()

    def _unpacked(self, packed: bytes) -> str:
        try:
            return zlib.decompress(packed).decode()
        except (zlib.error, UnicodeDecodeError, TypeError) as error:
            raise damaged(self.address, str(error)) from error

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise refused(self.address, error) from error
        except (sqlite3.DatabaseError, ValueError) as error:
            raise damaged(self.address, str(error)) from error
        except OSError as error:
            raise refused(self.address, error) from error
