"""A support bundle without private data.

It has only the values named here: no key, fingerprint, address, transaction, amount, name, e-mail address,
host, path, or token. Of what the doctor found it has the name and the outcome, and no sentence.
"""

import platform as system
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from custody._version import __version__
from firmware_bridge.model import DeviceState, Family
from signerd.account.config import LoopbackSection
from signerd.backup.schedule import last_backup
from signerd.core.states import State
from signerd.doctor.finding import DoctorFinding, Installation
from signerd.errors import SignerdError
from signerd.journal.chain import figures_of
from signerd.journal.storage import JOURNAL, open_to_read
from signerd.shapes import DeviceView

FORMAT = 1
LIBRARIES = (
    "hwi",
    "hidapi",
    "libusb-package",
    "pyserial",
    "httpx",
    "pydantic",
    "starlette",
    "uvicorn",
    "keyring",
)
LEFT_OUT = "…"
_RELEASE_WORD = re.compile(r"[a-z0-9._-]{1,40}")
_NAME = re.compile(r"[a-z][a-z-]{0,39}")
_MODEL = re.compile(r"[A-Za-z][A-Za-z0-9_ .+-]{0,39}")
_FIRMWARE = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){0,3}")


def bundle(
    installation: Installation, findings: Mapping[str, DoctorFinding], devices: Sequence[DeviceView]
) -> dict[str, Any]:
    """The bundle, as a JSON value."""
    return {
        "format": FORMAT,
        "signerd": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "system": _system(),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "configuration": _configuration(installation),
        "daemon": _daemon(installation),
        "devices": [_device(device) for device in devices],
        "journal": _journal(installation),
        "doctor": {name: finding.outcome.value for name, finding in findings.items()},
    }


def _system() -> dict[str, str]:
    try:
        release = system.freedesktop_os_release()
    except (OSError, ValueError):
        release = {}
    # As os-release(5) allows it for these two fields, else nothing: it could name anything.
    name, number = (_only(_RELEASE_WORD, release.get(field, ""), "") for field in ("ID", "VERSION_ID"))
    return {"kind": system.system(), "machine": system.machine(), "id": name, "version": number}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _configuration(installation: Installation) -> dict[str, Any] | None:
    """Of settings that could name anything, only whether they are set."""
    try:
        config = installation.config
    except SignerdError:
        return None
    return {
        "network": str(config.network),
        "platform": {
            "https": config.platform.url.startswith("https://"),
            "own_authority": config.platform.ca_file is not None,
            "workspaces": len(config.platform.workspaces),
            "long_poll_seconds": config.platform.long_poll_seconds,
        },
        "devices": {"usb": config.devices.usb, "endpoints": len(config.devices.endpoints)},
        "lowered": list(config.checks.lowered),
        "rules_elsewhere": config.rules is not None,
        "secrets": config.secrets.store,
        "loopback": {
            "tcp": config.loopback.tcp,
            "usual_port": config.loopback.port == LoopbackSection().port,
        },
        "notifications": config.notifications.show,
        "backup": {"scheduled": config.backup.scheduled, "every_days": config.backup.every_days},
    }


def _daemon(installation: Installation) -> dict[str, Any] | None:
    status = installation.status
    if status is None:
        return None
    return {
        "platform_reachable": status.platform_reachable,
        "signed_in": status.signed_in,
        "registered": status.fingerprint is not None,
        "vaults_pinned": status.vaults_pinned,
        "waiting": status.waiting_for_you,
        "page_served": status.page_url is not None,
        "notes": len(status.notes),
    }


def _device(device: DeviceView) -> dict[str, Any]:
    """The kind of device, nothing that identifies it."""
    return {
        "family": _known(Family, device.family),
        "model": _only(_MODEL, device.model),
        "state": _known(DeviceState, device.state),
        "firmware": _only(_FIRMWARE, device.firmware or ""),
        "emulator": device.emulator,
        "advisories": len(device.advisories),
    }


def _known(ours: type[StrEnum], text: str) -> str:
    return text if text in list(ours) else LEFT_OUT


def _only(wanted: re.Pattern[str], text: str, otherwise: str = LEFT_OUT) -> str:
    return text if wanted.fullmatch(text) else otherwise


def _journal(installation: Installation) -> dict[str, Any] | None:
    if not (installation.state / JOURNAL).exists():
        return None
    try:
        with closing(open_to_read(installation.state)) as journal:
            figures = figures_of(journal)
            format_version = journal.execute("PRAGMA user_version").fetchone()[0]
    except Exception:  # noqa: BLE001 - the doctor reports a damaged journal; the rest of the bundle stays useful
        return None
    return {
        "version": format_version,
        "megabytes": (installation.state / JOURNAL).stat().st_size // 2**20,
        "signatures": figures.signatures,
        "proposals": {_known(State, name): count for name, count in figures.proposals.items()},
        "entries": {_only(_NAME, name): count for name, count in figures.entries.items()},
        "backup_made": last_backup(installation.state) is not None,
    }
