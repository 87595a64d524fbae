"""Firmware with known flaws (S22) and what firmware is known to do (S20, data outputs): tables that come with
the package.

    flaws = known_flaws(device)             # from the packaged list
    listed = load_list(data, signature, key)    # a newer list, signed by a key that the caller trusts
    flaws = known_flaws(device, listed)

A list guarantees nothing, and a device may lie about its version: see docs/build/devices.md.
"""

from firmware_bridge.advisories.firmware import has_anti_exfil
from firmware_bridge.advisories.lists import (
    Advisories,
    Advisory,
    AdvisoryListError,
    BadListSignature,
    MalformedList,
    OlderList,
    Severity,
    firmware_known,
    known_flaws,
    load_list,
)

__all__ = [
    "Advisories",
    "Advisory",
    "AdvisoryListError",
    "BadListSignature",
    "MalformedList",
    "OlderList",
    "Severity",
    "firmware_known",
    "has_anti_exfil",
    "known_flaws",
    "load_list",
]
