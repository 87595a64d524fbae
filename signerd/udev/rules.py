"""The udev rules of this project, those installed, and the devices that the user may not open.

Every function takes the root of the file system.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum, unique
from functools import cache
from pathlib import Path

# The first folder that has a file of a given name wins (udev(7)).
RULE_FOLDERS = ("etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d")
RULE_MODE = 0o644
# Present where udev runs, which it does not in most containers.
CONTROL = "run/udev/control"
RELOAD_UDEV = (
    ("udevadm", "control", "--reload"),
    ("udevadm", "trigger", "--subsystem-match=usb", "--subsystem-match=hidraw", "--subsystem-match=tty"),
)
_VENDOR = re.compile(r'ATTRS?\{idVendor\}=="([0-9a-f]{4})"')
# A device's node on the bus. Rules for serial ports do not count: other products have a Jade's USB chips too.
_ON_BUS = re.compile(
    r'^SUBSYSTEM=="usb", ATTR\{idVendor\}=="([0-9a-f]{4})"(?:, ATTR\{idProduct\}=="([0-9a-f]{4})")?',
    re.MULTILINE,
)


@unique
class RuleStatus(StrEnum):
    INSTALLED = "installed"
    # Another version, or changed by hand.
    DIFFERS = "differs"
    MISSING = "missing"


@dataclass(frozen=True)
class RuleFile:
    """``place``: the folder it was found in; empty where it is missing."""

    name: str
    status: RuleStatus
    place: str


def ours() -> dict[str, bytes]:
    """The content of each file, by its name."""
    # A wheel has them beside this file, a checkout at its root.
    beside = sorted(Path(__file__).parent.glob("*.rules"))
    files = beside or sorted((Path(__file__).parents[2] / "udev").glob("*.rules"))
    return {file.name: file.read_bytes() for file in files}


@cache
def _numbers() -> dict[tuple[str, str], str]:
    """The rule file by vendor and product; an empty product means all of the vendor's."""
    matches = (
        (match, name) for name, content in ours().items() for match in _ON_BUS.findall(content.decode())
    )
    return {(vendor, product): name for (vendor, product), name in matches}


def rule_files(root: Path) -> tuple[RuleFile, ...]:
    return tuple(_rule_file(root, name, content) for name, content in ours().items())


def _rule_file(root: Path, name: str, content: bytes) -> RuleFile:
    for folder in RULE_FOLDERS:
        with suppress(OSError):
            installed = (root / folder / name).read_bytes()
            status = RuleStatus.INSTALLED if installed == content else RuleStatus.DIFFERS
            return RuleFile(name, status, f"/{folder}")
    return RuleFile(name, RuleStatus.MISSING, "")


def install(root: Path) -> tuple[Path, ...]:
    """Write the files that are missing or differ. Returns what was written. Raises OSError."""
    folder = root / RULE_FOLDERS[0]
    content = ours()
    wanted = [one.name for one in rule_files(root) if one.status is not RuleStatus.INSTALLED]
    if wanted:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    return tuple(_written(folder / name, content[name]) for name in wanted)


def _written(path: Path, content: bytes) -> Path:
    # udev reads `*.rules` only, and so never half a file.
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(content)
    fresh.chmod(RULE_MODE)
    return fresh.replace(path)


def shut_devices(root: Path) -> list[tuple[Path, str]]:
    """The node of each USB signing device that this user may not open, and the file with its rule."""
    return [(node, rule) for node, rule in _present(root) if not os.access(node, os.R_OK | os.W_OK)]


def _present(root: Path) -> Iterator[tuple[Path, str]]:
    for place in sorted((root / "sys/bus/usb/devices").glob("*")):
        vendor, product = _word(place / "idVendor"), _word(place / "idProduct")
        rule = _numbers().get((vendor, product)) or _numbers().get((vendor, ""))
        if rule is not None:
            bus, number = _word(place / "busnum"), _word(place / "devnum")
            if bus.isdigit() and number.isdigit():
                yield root / f"dev/bus/usb/{int(bus):03}/{int(number):03}", rule


def _word(path: Path) -> str:
    try:
        # Another program's rule may have any bytes in its comments.
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def some_rule(root: Path) -> bool:
    """Whether any installed rule, of whatever program, names the vendor of a signing device."""
    files = (file for folder in RULE_FOLDERS for file in (root / folder).glob("*.rules"))
    makers = {vendor for vendor, _product in _numbers()}
    return any(vendor in makers for file in files for vendor in _VENDOR.findall(_word(file)))
