"""The state folder, the journal in it, the disk below it, and who works on it."""

import fcntl
import os
import shutil
import stat
from contextlib import closing

from signerd.doctor.finding import Finding, Outcome, Patient, of_error, well
from signerd.errors import SignerdError
from signerd.journal.storage import LOCK

# A journal of years is a tenth of it; SQLite needs room to write beside.
LEAST_FREE_BYTES = 100 * 1024 * 1024
_MEMORY = "The journal is signerd's memory: without it nothing is signed."


def configuration(patient: Patient) -> Finding:
    try:
        config = patient.config
    except SignerdError as error:
        return of_error(error, "Without a configuration signerd does not start.")
    return well(f"{config.platform.url} on {config.network}")


def folder(patient: Patient) -> Finding:
    if not patient.state.exists():
        return Finding(Outcome.NOTE, f"There is no {patient.state} yet.", "", "The first sign-in makes it.")
    wrong = _wrong_mode(patient)
    if wrong is None:
        return well(f"{patient.state} is yours alone.")
    return Finding(
        Outcome.TROUBLE,
        wrong,
        "Whoever can enter it could read what you sign, or put another socket there.",
        f"Look at what is in it, then: chmod 700 {patient.state}",
    )


def _wrong_mode(patient: Patient) -> str | None:
    found = patient.state.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return f"{patient.state} is not a folder, or is a link to one."
    if found.st_uid != os.getuid():
        return f"{patient.state} belongs to another user."
    if stat.S_IMODE(found.st_mode) & 0o077:
        return f"{patient.state} has the mode {stat.S_IMODE(found.st_mode):04o}."
    return None


def disk(patient: Patient) -> Finding:
    place = patient.state
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free >= LEAST_FREE_BYTES:
        return well(f"{free // 2**20} MiB are free.")
    return Finding(Outcome.TROUBLE, f"{free // 2**20} MiB are free at {place}.", _MEMORY, "Free some space.")


def daemon(patient: Patient) -> Finding:
    if patient.status is not None:
        return well(f"signerd {patient.status.version} answers.")
    if _held(patient):
        return Finding(
            Outcome.TROUBLE,
            f"Another program works on {patient.state}, and no socket answers there.",
            "One signerd works on a state folder at a time; a second one does not start.",
            "It may be starting. Else find it with: pgrep -af signerd",
        )
    return Finding(Outcome.NOTE, "signerd does not run.", "Devices are seen by the daemon.", "signerd run")


def _held(patient: Patient) -> bool:
    """Asked by trying for a moment to share the lock, which nobody has then who does not hold it alone."""
    try:
        with (patient.state / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def journal(patient: Patient) -> Finding:
    from signerd.daemon.views import audit_report
    from signerd.journal.rows import audit_entries
    from signerd.journal.storage import JOURNAL, fault_of, open_to_read

    if not (patient.state / JOURNAL).exists() and patient.status is None:
        return Finding(Outcome.NOTE, "There is no journal yet.")
    with closing(open_to_read(patient.state)) as opened:
        damage = fault_of(opened)
        report = None if damage else audit_report(tuple(audit_entries(opened)))
    fault = damage if report is None else report.fault
    if fault is not None or report is None:
        return Finding(
            Outcome.TROUBLE, f"The journal is not whole: {fault}.", _MEMORY, "signerd audit verify"
        )
    return well(f"The chain of {report.entries} decisions is whole.")
