"""The threads that work beside the requests: the outbox, the mail, and one watcher for each chain."""

import threading
from collections.abc import Callable, Sequence

import structlog

from custody.server.domain.errors import ChainUnavailable, DatabaseUnavailable, OutcomeUnknown
from custody.server.service.jobs.outbox import Outbox
from custody.server.service.jobs.sweeping import Sweep
from custody.server.service.network.watcher import Watcher
from custody.server.service.requests.changes import Changes

log = structlog.get_logger()

# Jobs of this process are done at once; this is for retries that fall due and for other processes' jobs.
OUTBOX_SECONDS = 0.25
# A block comes every ten minutes, an embedded one when somebody asks; half a second is what a person calls at once.
WATCH_SECONDS = 0.5
JOIN_SECONDS = 10.0


class Workers:
    """Started and stopped with the server. Stopping waits for what is under way; a kill loses nothing either."""

    def __init__(
        self, outbox: Outbox, mails: Outbox, watchers: Sequence[Watcher], expiry: Sweep, changes: Changes
    ) -> None:
        self._outbox = outbox
        self._mails = mails
        self._watchers = watchers
        self._expiry = expiry
        self._changes = changes
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        self._threads = [
            threading.Thread(target=self._run_outbox, name="outbox"),
            threading.Thread(target=self._run_mails, name="mail"),
            *(
                threading.Thread(target=self._run_watcher, args=(each,), name="watcher")
                for each in self._watchers
            ),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._changes.announce()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)

    def _run_outbox(self) -> None:
        seen = self._changes.version
        while not self._stopping.is_set():
            _survive("outbox", lambda: (self._outbox.run_due(), self._expiry.run_due()))
            seen = self._changes.wait(seen, OUTBOX_SECONDS)

    def _run_mails(self) -> None:
        seen = self._changes.version
        while not self._stopping.is_set():
            _survive("mail", self._mails.run_due)
            seen = self._changes.wait(seen, OUTBOX_SECONDS)

    def _run_watcher(self, watcher: Watcher) -> None:
        while not self._stopping.is_set():
            _survive("watcher", watcher.look)
            self._stopping.wait(WATCH_SECONDS)


def _survive(what: str, act: Callable[[], object]) -> None:
    try:
        act()
    except ChainUnavailable as error:
        log.warning("chain unavailable", worker=what, reason=error.detail)
    except (DatabaseUnavailable, OutcomeUnknown) as error:
        # It comes back, and so does the work: every job is done again until its end is stored.
        log.warning("database unavailable", worker=what, reason=error.detail)
    except Exception:  # the thread's outermost border: without it one bad row would stop all work in silence
        log.exception("worker failed", worker=what)
