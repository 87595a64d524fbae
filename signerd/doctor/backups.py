"""Whether there is a backup of signerd's state, and how old it is."""

from contextlib import closing
from datetime import UTC, datetime

from signerd.backup.last import last_made, reminders
from signerd.doctor.finding import Finding, Outcome, Patient, well
from signerd.journal.storage import JOURNAL, open_to_read


def backup(patient: Patient) -> Finding:
    pinned = False
    if (patient.state / JOURNAL).exists():
        with closing(open_to_read(patient.state)) as journal:
            pinned = bool(journal.execute("SELECT count(*) FROM pins").fetchone()[0])
    now = datetime.fromtimestamp(patient.now(), UTC)
    told = tuple(reminders(patient.state, patient.config.backup, now, pinned=pinned))
    if told:
        return Finding(
            Outcome.NOTE,
            told[0],
            "Without one, a lost disk loses the pins and the record of what was signed: signerd could not "
            "recognise a payment that is asked for twice.",
            "signerd backup FILE",
        )
    made = last_made(patient.state)
    return well(
        "There is nothing to back up yet." if made is None else f"The last backup is of {made:%Y-%m-%d}."
    )
