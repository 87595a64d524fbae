"""The devices, as the daemon sees them: not ready, held by another program, or with firmware that is known to be flawed."""

from signerd.client import DaemonClient
from signerd.doctor.finding import Finding, Outcome, Patient, well
from signerd.shapes import DeviceView

# States in which there is nothing for the person to do.
AT_WORK = frozenset({"ready", "busy"})
_SEEN = "Devices are seen while signerd runs."


def _devices(patient: Patient) -> tuple[DeviceView, ...]:
    with DaemonClient(patient.state) as daemon:
        return daemon.devices()


def readiness(patient: Patient) -> Finding:
    if patient.status is None:
        return Finding(Outcome.UNKNOWN, _SEEN)
    found = _devices(patient)
    if not found:
        return Finding(Outcome.NOTE, "No device is connected.")
    waiting = [one for one in found if one.state not in AT_WORK]
    if not waiting:
        return well(f"{len(found)} ready.")
    return Finding(
        Outcome.TROUBLE,
        " ".join(f"{one.model} is {one.state}{f': {one.detail}' if one.detail else ''}." for one in waiting),
        "An approved payment waits until its device is ready.",
        " ".join(dict.fromkeys(one.advice for one in waiting if one.advice)),
    )


def firmware(patient: Patient) -> Finding:
    if patient.status is None:
        return Finding(Outcome.UNKNOWN, _SEEN)
    flawed = [(one, flaw) for one in _devices(patient) for flaw in one.advisories]
    if not flawed:
        return well("Nothing is known to be wrong with the devices that are connected.")
    return Finding(
        Outcome.TROUBLE,
        " ".join(f"{one.model} {one.firmware or ''}: {flaw.id}. {flaw.text}" for one, flaw in flawed),
        "A flaw in a device's firmware can cost the keys in it.",
        " ".join(dict.fromkeys(flaw.advice for _one, flaw in flawed)),
    )


def notes(patient: Patient) -> Finding:
    if patient.status is None:
        return Finding(Outcome.UNKNOWN, "Known while signerd runs.")
    if not patient.status.notes:
        return well("signerd misses nothing.")
    return Finding(Outcome.NOTE, " ".join(patient.status.notes), "", "signerd status")
