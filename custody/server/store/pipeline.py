"""PostgreSQL's wire: many statements in one way there and back, by libpq's pipeline (PostgreSQL's manual, "Pipeline Mode").

The driver's own cursors can do that too, and take five times as long over it (ADR 26). The driver's are the connection,
libpq, what is known of types, and the errors. Every statement is prepared, once for each connection.
"""

import select
from collections.abc import Sequence
from itertools import count
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGresult
from psycopg.types.numeric import Int8BinaryDumper

from custody.server.store.wire import Outcome, Rows, Statement

# Of each connection's: the server keeps them in its memory. The platform has fewer, but for lists of many lengths.
MAX_PREPARED: Final = 256
_READABLE, _EITHER = select.POLLIN, select.POLLIN | select.POLLOUT
# "Cached plan must not change result type" (feature not supported), where a column is of another type now; there is no such statement.
_ANOTHER_PLAN: Final = frozenset({"0A000", "26000"})
_DONE = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK})
# A statement: its SQL, and the types that its values have by themselves.
_Key = tuple[str, tuple[int, ...]]


class _Given(NamedTuple):
    """A statement with its values as libpq takes them."""

    key: _Key
    values: Sequence[Buffer | None]
    formats: Sequence[Format]


class _Named(NamedTuple):
    """A statement that is prepared by a name."""

    key: _Key
    name: bytes


_FORGET: Final = _Named(("DEALLOCATE ALL", ()), b"")


class Pipeline:
    """One connection's. ``patience_seconds``: how long the server may say nothing before it is taken to be gone."""

    def __init__(self, driver: psycopg.Connection[Any], patience_seconds: float) -> None:
        # By itself the driver gives a number the least type that holds it, and a statement would be prepared for each.
        driver.adapters.register_dumper(int, Int8BinaryDumper)
        self._driver = driver
        self._patience_seconds = patience_seconds
        self._types = Transformer(driver)
        self._prepared: dict[_Key, bytes] = {}
        self._numbers = count()
        self._poll = select.poll()

    @property
    def is_broken(self) -> bool:
        return self._driver.closed

    def exchange(self, statements: Sequence[Statement]) -> Outcome:
        """Sends all of them, then waits. Whatever interrupts that closes the connection."""
        given: list[_Given] = []
        try:
            given.extend(map(self._given, statements))
        except psycopg.Error as error:
            # A value that the driver has no way to say.
            return Outcome([()] * len(given), error, was_sent=False)
        sent: list[_Named | None] = []
        answers: list[PGresult] = []
        try:
            self._send(given, sent)
            self._receive(answers)
            self._driver.pgconn.exit_pipeline_mode()
        except psycopg.OperationalError as error:
            self._driver.close()
            return self._outcome(sent, answers, error)
        except BaseException:
            self._driver.close()
            raise
        return self._outcome(sent, answers)

    def _given(self, statement: Statement) -> _Given:
        values = self._types.dump_sequence(statement.given, [PyFormat.AUTO] * len(statement.given))
        return _Given((statement.sql, self._types.types or ()), values, self._types.formats or ())

    def _send(self, given: Sequence[_Given], sent: list[_Named | None]) -> None:
        """``sent``: what will be answered, in its order. Where a statement is prepared, which; None where one is done."""
        libpq = self._driver.pgconn
        libpq.enter_pipeline_mode()
        fresh: dict[_Key, bytes] = {}
        for key, values, formats in given:
            name = self._prepared.get(key) or fresh.get(key)
            if name is None:
                name = fresh[key] = b"custody_%d" % next(self._numbers)
                libpq.send_prepare(name, key[0].encode(), key[1])
                sent.append(_Named(key, name))
            libpq.send_query_prepared(name, values, formats)
            sent.append(None)
        if len(self._prepared) > MAX_PREPARED:
            libpq.send_query_params(_FORGET.key[0].encode(), None)
            sent.append(_FORGET)
        libpq.pipeline_sync()

    def _receive(self, answers: list[PGresult]) -> None:
        """Raises OperationalError where the connection breaks, or nothing comes for too long."""
        libpq = self._driver.pgconn
        while True:
            unsent = libpq.flush()
            is_between = False
            while not libpq.is_busy():
                answer = libpq.get_result()
                if answer is None:
                    # After each statement's answer there is none, once.
                    if is_between:
                        break
                    is_between = True
                    continue
                is_between = False
                if answer.status == ExecStatus.PIPELINE_SYNC:
                    return
                answers.append(answer)
            self._wait(_EITHER if unsent else _READABLE)
            libpq.consume_input()

    def _wait(self, events: int) -> None:
        self._poll.register(self._driver.pgconn.socket, events)
        if not self._poll.poll(self._patience_seconds * 1_000):
            raise psycopg.OperationalError("The server has not answered in time.")

    def _outcome(
        self, sent: Sequence[_Named | None], answers: Sequence[PGresult], broken: Exception | None = None
    ) -> Outcome:
        rows: list[Rows] = []
        unread: Exception | None = None
        for named, answer in zip(sent, answers, strict=False):
            if answer.status not in _DONE:
                return Outcome(rows, unread or self._error(answer))
            if named is _FORGET:
                self._prepared.clear()
            elif named is not None:
                self._prepared[named.key] = named.name
            elif unread is None:
                try:
                    rows.append(self._rows(answer))
                except Exception as error:  # noqa: BLE001 - whatever cannot be read was done all the same
                    unread = error
        return Outcome(rows, unread or broken)

    def _rows(self, answer: PGresult) -> Rows:
        if answer.status == ExecStatus.COMMAND_OK:
            return ()
        self._types.set_pgresult(answer)
        rows = self._types.load_rows(0, answer.ntuples, tuple)
        self._types.set_pgresult(None)
        return rows

    def _error(self, answer: PGresult) -> psycopg.Error:
        error = error_from_result(answer, "utf-8")
        if error.sqlstate in _ANOTHER_PLAN:
            # What was prepared is not what it was: the next time it is prepared anew.
            self._prepared.clear()
        if error.sqlstate is None and self._driver.pgconn.status == ConnStatus.BAD:
            # Not the server's word but libpq's, that there is none.
            return psycopg.OperationalError(str(error))
        return error
