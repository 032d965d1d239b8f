"""A store in one SQLite file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from onnxsmith.base import folders, user_files
from onnxsmith.base.printable import one_line
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
_START = b"SQLite format 3\0"
"""The first bytes of every database of SQLite that is not empty."""
_MOST = 1 << 26
"""Limits the bytes of a row or run when it is unpacked. A choice: 64 MiB; most rows have a few kilobytes."""
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
        question = "SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
        views = [name for (name,) in database.execute(question)]
        if views:
            raise foreign(self.address, f"the database has {one_line(min(views))}, which is no table")
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
            row = Row.from_json(_unpacked(packed[0]))
            if row.key != key:
                raise ValueError(f"the entry has the row of another key: {row.key}")
        except ValueError as error:
            self._note_damaged(key, error)
            return None
        return row

    def summaries(self, keys: Collection[str]) -> dict[str, Summary]:
        wanted = set(keys)
        question = "SELECT key, outcome, headline, problem, seconds, row FROM rows"
        summaries = {}
        with self._refusing():
            if len(wanted) <= _AT_ONCE:
                marks = ",".join("?" * len(wanted))
                rows = self._database.execute(f"{question} WHERE key IN ({marks})", list(wanted))
            else:
                rows = self._database.execute(question)
            for *values, packed in rows:
                if values[0] not in wanted:
                    continue
                try:
                    summaries[values[0]] = Summary.read(values)
                    _refuse_other(_unpacked(packed), summaries[values[0]])
                except ValueError as error:
                    summaries.pop(values[0], None)
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
        if packed is None:
            return None
        try:
            text = _unpacked(packed[0])
        except ValueError as error:
            raise damaged(self.address, str(error)) from error
        return Run.from_json(text, self.address)

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

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise refused(self.address, error) from error
        except (sqlite3.DatabaseError, ValueError) as error:
            if not _is_database(Path(self.address)):
                raise foreign(self.address, "it is no database of SQLite") from error
            raise damaged(self.address, str(error)) from error
        except OSError as error:
            raise refused(self.address, error) from error


def _unpacked(packed: object) -> str:
    """Returns the text of a row or a run.

    Raises:
        ValueError: it is damaged, or expands to more than `_MOST` bytes.
    """
    if not isinstance(packed, bytes):
        raise ValueError("it has no text")
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(packed, _MOST)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacking.eof:
        long = bool(unpacking.unconsumed_tail)
        raise ValueError(f"it expands to more than {_MOST:,} bytes" if long else "its end is missing")
    return content.decode()


def _refuse_other(text: str, summary: Summary) -> None:
    """Raises a ValueError if a row is not that of its summary. The row is not parsed, which would take longer than the
    rest: in what `Row.to_json` writes, its own key and outcome stand before those of its steps."""
    for name, value in (("key", summary.key), ("outcome", summary.outcome.value)):
        if text.partition(f'"{name}":"')[2].partition('"')[0] != value:
            raise ValueError(f"the entry has a row with another {name}")


def _is_database(file: Path) -> bool:
    try:
        with user_files.opened(file) as opened:
            return opened.read(len(_START)) == _START
    except OSError:
        return True
