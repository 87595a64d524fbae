"""Runs all checks in parallel, each with a deadline, so that a hanging keyring, disk or network blocks no
other check.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from signerd.doctor import machine, platform
from signerd.doctor.finding import Check, Finding, Installation, Outcome, of_error
from signerd.doctor.machine import sandbox
from signerd.errors import ConfigError, SignerdError

CHECKS = (
    Check("configuration", platform.configuration),
    Check("state-folder", platform.folder),
    Check("disk", platform.disk),
    Check("daemon", platform.daemon),
    Check("journal", platform.journal),
    Check("backup", platform.backup),
    Check("libraries", machine.libraries),
    Check("permissions", machine.permissions),
    Check("sandbox", sandbox),
    Check("devices", machine.readiness),
    Check("firmware", machine.firmware),
    Check("secrets", platform.secrets),
    Check("session", platform.session),
    Check("platform", platform.reach),
    Check("clock", platform.clock),
    Check("port", machine.port),
    Check("desktop", machine.desktop),
    Check("notes", machine.notes),
)
# The slowest check waits thirty seconds for a locked keyring.
SECONDS = 45.0

_log = logging.getLogger(__name__)


def examine(
    installation: Installation,
    checks: Sequence[Check] = CHECKS,
    *,
    seconds: float = SECONDS,
    waiting: Callable[[Sequence[str]], None] = lambda _names: None,
) -> dict[str, Finding]:
    """By name, in the table's order. ``waiting`` is called after a second, with the unfinished checks."""
    done: queue.SimpleQueue[tuple[str, Finding]] = queue.SimpleQueue()
    for check in checks:
        # A daemon thread: a hanging one must not keep the program alive.
        threading.Thread(target=_look, args=(check, installation, done), daemon=True).start()
    found: dict[str, Finding] = {}
    for patience in _patience(seconds):
        _collect(found, done, len(checks), patience)
        missing = [check.name for check in checks if check.name not in found]
        if not missing:
            break
        waiting(missing)
    late = Finding(Outcome.UNKNOWN, f"No answer in {seconds:.0f} seconds.")
    return {check.name: found.get(check.name, late) for check in checks}


def _patience(seconds: float) -> Iterator[float]:
    first = min(1.0, seconds)
    yield first
    yield seconds - first


def _collect(
    found: dict[str, Finding], done: "queue.SimpleQueue[tuple[str, Finding]]", most: int, seconds: float
) -> None:
    end = time.monotonic() + seconds
    while len(found) < most:
        try:
            name, finding = done.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            return
        found[name] = finding


def _look(check: Check, installation: Installation, done: "queue.SimpleQueue[tuple[str, Finding]]") -> None:
    try:
        finding = check.look(installation)
    except ConfigError:
        # Reported once, by the check of the configuration.
        finding = Finding(Outcome.UNKNOWN, "Known once the configuration can be read.")
    except SignerdError as error:
        finding = of_error(error, "")
    except Exception:  # noqa: BLE001 - one check's failure must not stop the others
        _log.debug("%s", check.name, exc_info=True)
        finding = Finding(Outcome.UNKNOWN, "It could not be checked.")
    done.put((check.name, finding))
