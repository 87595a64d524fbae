"""Runs all checks in parallel, each with a deadline, so that a hanging keyring, disk or network blocks no
other check.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from signerd.doctor import machine, platform
from signerd.doctor.finding import DoctorFinding, DoctorOutcome, Examination, Installation, of_error
from signerd.doctor.machine import sandbox
from signerd.errors import ConfigError, SignerdError

CHECKS: Mapping[str, Examination] = {
    "configuration": platform.configuration,
    "state-folder": platform.folder,
    "disk": platform.disk,
    "daemon": platform.daemon,
    "journal": platform.journal,
    "backup": platform.backup,
    "libraries": machine.libraries,
    "permissions": machine.permissions,
    "sandbox": sandbox,
    "devices": machine.readiness,
    "firmware": machine.firmware,
    "secrets": platform.secrets,
    "session": platform.session,
    "platform": platform.reach,
    "clock": platform.clock,
    "port": machine.port,
    "desktop": machine.desktop,
    "notes": machine.notes,
}
# The slowest check waits thirty seconds for a locked keyring.
SECONDS = 45.0

_log = logging.getLogger(__name__)


def examine(
    installation: Installation,
    checks: Mapping[str, Examination] = CHECKS,
    *,
    seconds: float = SECONDS,
    waiting: Callable[[Sequence[str]], None] = lambda _names: None,
) -> dict[str, DoctorFinding]:
    """By name, in the table's order. ``waiting`` is called after a second, with the unfinished checks."""
    findings: dict[str, DoctorFinding] = {}
    # Daemon threads: a hanging one must not keep the program alive.
    threads = [
        threading.Thread(target=_look, args=(*check, installation, findings), daemon=True)
        for check in checks.items()
    ]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for patience in (min(1.0, seconds), seconds):
        for thread in threads:
            thread.join(max(0.0, begun + patience - time.monotonic()))
        missing = [name for name in checks if name not in findings]
        if not missing:
            break
        waiting(missing)
    late = DoctorFinding(DoctorOutcome.UNKNOWN, f"No answer in {seconds:.0f} seconds.")
    return {name: findings.get(name, late) for name in checks}


def _look(
    name: str, examination: Examination, installation: Installation, findings: dict[str, DoctorFinding]
) -> None:
    try:
        finding = examination(installation)
    except ConfigError:
        # Reported once, by the check of the configuration.
        finding = DoctorFinding(DoctorOutcome.UNKNOWN, "Known once the configuration can be read.")
    except SignerdError as error:
        finding = of_error(error, "")
    except Exception:  # noqa: BLE001 - one check's failure must not stop the others
        _log.debug("%s", name, exc_info=True)
        finding = DoctorFinding(DoctorOutcome.UNKNOWN, "It could not be checked.")
    findings[name] = finding
