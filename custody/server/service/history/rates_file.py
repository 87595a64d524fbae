"""The operator's file of daily rates, read again when it changes."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final

import structlog

from custody.server.domain.errors import Misconfigured
from custody.server.domain.history import BadRates, DailyRates, parse_rates

log = structlog.get_logger()

MAX_BYTES: Final = 1_000_000


class RatesMisconfigured(Misconfigured):
    hint = "Each line is like 2026-05-01,EUR,81234.56. Correct the file, or unset CUSTODY_RATES_FILE."


@dataclass
class RatesFile:
    """If the file becomes unreadable or malformed, the last rates stay in use; the log has one warning for
    each version of the file.
    """

    path: Path
    _known: DailyRates | None = None
    # Which version of the file was read last, good or bad.
    _version: object = None
    _lock: Lock = field(default_factory=Lock)

    def require(self) -> None:
        """Reads the file when the server starts. Raises RatesMisconfigured."""
        with self._lock:
            try:
                self._read()
            except (BadRates, OSError) as error:
                raise RatesMisconfigured(
                    f"The rates in {self.path} cannot be used: {_words(error)}."
                ) from None

    def rates(self) -> DailyRates | None:
        """The current rates; None where none could be read yet."""
        with self._lock:
            before = self._version
            try:
                self._read()
            except (BadRates, OSError) as error:
                if isinstance(error, OSError):
                    self._version = error.errno
                if self._version != before:
                    log.warning("rates not read", file=str(self.path), reason=_words(error))
            return self._known

    def _read(self) -> None:
        """Raises BadRates, OSError."""
        # Opening a FIFO must not block.
        handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            if version == self._version:
                return
            self._version = version
            if not stat.S_ISREG(status.st_mode):
                raise BadRates("it is not a regular file")
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise BadRates(f"it has more than {MAX_BYTES:,} bytes")
        try:
            # Spreadsheets write a byte order mark.
            self._known = parse_rates(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise BadRates("it is not in UTF-8") from None


def _words(error: BadRates | OSError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
