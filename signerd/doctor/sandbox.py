"""Whether this system can confine the processes of devices."""

import sys

from firmware_bridge import confinement
from signerd.doctor.finding import Finding, Outcome, Patient, well

_WHY = "A device, or a flaw in a maker's library, could use all rights of this user."


def sandbox(patient: Patient) -> Finding:
    if not patient.config.devices.sandbox:
        return Finding(
            Outcome.NOTE,
            "The processes of devices are not confined: [devices] sandbox is off.",
            _WHY,
            "Remove the line, if the device works without it.",
        )
    found = confinement.available()
    if found.landlock and found.seccomp:
        return well(f"A device's process can reach only that device (Landlock {found.landlock}, seccomp).")
    layers = (("Landlock", found.landlock), ("seccomp", found.seccomp))
    missing = [name for name, there in layers if not there]
    return Finding(
        Outcome.NOTE,
        f"This system cannot confine the processes of devices completely: no {' and no '.join(missing)}.",
        _WHY,
        "Linux 5.13 and later have Landlock, where the distribution switches it on (lsm=)."
        if sys.platform == "linux"
        else "On Linux they are confined.",
    )
