"""The machine: libraries, permissions, the port, the desktop; the devices as the daemon sees them, and
whether their processes can be confined.
"""

import sys
from importlib.util import find_spec

from firmware_bridge import advisories, confinement
from firmware_bridge.missing import install_line
from signerd.client import DaemonClient
from signerd.doctor.finding import DoctorFinding, Installation, note, trouble, unknown, well
from signerd.loopback.access.listening import listening_ports
from signerd.notifying.notifier import session_bus
from signerd.shapes import DeviceView
from signerd.udev.rules import shut_devices, some_rule

LIBRARIES = ("usb1", "hid", "serial", "hwilib")


def libraries(_installation: Installation) -> DoctorFinding:
    version = ".".join(map(str, sys.version_info[:3]))
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if not missing:
        return well(f"Python {version}, with the libraries for devices.")
    if missing == ["hwilib"]:
        return trouble(
            f"Python {version} has no HWI.",
            "HWI talks to all devices but a Trezor. An installer omits it where its metadata excludes this "
            "Python; it works nevertheless.",
            f"Run: {install_line()}",
        )
    return trouble(
        f"Python {version} has no {', '.join(missing)}.",
        "Devices are reached through these libraries.",
        "Install signerd again with its desktop part: pip install 'signerd[desktop]'",
    )


def permissions(installation: Installation) -> DoctorFinding:
    shut = shut_devices(installation.root)
    if shut:
        rules = sorted({rule for _node, rule in shut})
        return trouble(
            f"A device is connected that this user may not open: {', '.join(str(node) for node, _ in shut)}.",
            "Linux lets only root open a USB device, unless a rule says otherwise.",
            f"Run `signerd udev install`, which installs {', '.join(rules)}, and connect the device again.",
        )
    if sys.platform == "linux" and not some_rule(installation.root):
        return note(
            "No udev rule for a signing device is installed.",
            "Without one, a device that you connect cannot be opened.",
            "Run `signerd udev install`.",
        )
    return well("This user may open the devices that are connected.")


def port(installation: Installation) -> DoctorFinding:
    wanted = installation.config.loopback.port_to_serve()
    if wanted is None:
        return note("The page is switched off in the configuration.")
    if installation.status is not None:
        if installation.status.page_url is not None:
            return well(f"`signerd open` opens the page; apps call {installation.status.page_url}")
        return trouble("The page is not served.", "", "The notes of `signerd status` say why.")
    # As the daemon would: at both addresses or not at all.
    with listening_ports(wanted) as listeners:
        if listeners.port is not None:
            return well(f"Port {wanted} is free for the page.")
    return trouble(listeners.notes[0], "Without the port there is no page, and apps do not find signerd.")


def desktop(installation: Installation) -> DoctorFinding:
    screen = installation.environment.get("WAYLAND_DISPLAY") or installation.environment.get("DISPLAY")
    if session_bus(installation.environment) is not None and screen:
        return well("The desktop can show notifications.")
    return note(
        "There is no desktop session here.",
        "You get no notification when a payment waits.",
        "Look at the page or at `signerd proposals`; or start signerd in your desktop's session.",
    )


# States in which there is nothing for the person to do.
AT_WORK = frozenset({"ready", "busy"})
_SEEN = "Devices are known while signerd runs."


def _devices(installation: Installation) -> tuple[DeviceView, ...]:
    with DaemonClient(installation.state) as daemon:
        return daemon.devices()


def readiness(installation: Installation) -> DoctorFinding:
    if installation.status is None:
        return unknown(_SEEN)
    devices = _devices(installation)
    if not devices:
        return note("No device is connected.")
    waiting = [one for one in devices if one.state not in AT_WORK]
    if not waiting:
        return well(f"{len(devices)} ready.")
    return trouble(
        " ".join(f"{one.name} is {one.state}{f': {one.detail}' if one.detail else ''}." for one in waiting),
        "An approved payment waits until its device is ready.",
        " ".join(dict.fromkeys(one.advice for one in waiting if one.advice)),
    )


def firmware(installation: Installation) -> DoctorFinding:
    if installation.status is None:
        return unknown(_SEEN)
    flawed = [(one, flaw) for one in _devices(installation) for flaw in one.advisories]
    if not flawed:
        return well(f"No flaw is known in the connected devices (list of {advisories.packaged().read_on}).")
    said = (f"{one.name} {one.firmware or ''}: {flaw.id} ({flaw.date}). {flaw.text}" for one, flaw in flawed)
    return trouble(
        " ".join(said),
        f"A flaw in a device's firmware can cost its keys. The list is of {advisories.packaged().read_on}.",
        " ".join(dict.fromkeys(flaw.advice for _one, flaw in flawed)),
    )


def notes(installation: Installation) -> DoctorFinding:
    if installation.status is None:
        return unknown("Known while signerd runs.")
    if not installation.status.notes:
        return well("signerd has no notes.")
    alarmed = any("ALARM" in words for words in installation.status.notes)
    return (trouble if alarmed else note)(" ".join(installation.status.notes), "", "`signerd status`")


_WHY = "A device, or a flaw in a maker's library, could use all rights of this user."


def sandbox(installation: Installation) -> DoctorFinding:
    if not installation.config.devices.sandbox:
        return note(
            "The processes of devices are not confined: [devices] sandbox is off.",
            _WHY,
            "Remove the line, if the device works without it.",
        )
    available = confinement.available()
    if available.landlock and available.seccomp:
        return well(
            f"A device's process can reach only that device (Landlock {available.landlock}, seccomp)."
        )
    layers = (("Landlock", available.landlock), ("seccomp", available.seccomp))
    missing = [name for name, there in layers if not there]
    return note(
        f"This system cannot confine the processes of devices completely: no {' and no '.join(missing)}.",
        _WHY,
        "Linux 5.13 and later have Landlock, where the distribution switches it on (lsm=)."
        if sys.platform == "linux"
        else "On Linux they are confined.",
    )
