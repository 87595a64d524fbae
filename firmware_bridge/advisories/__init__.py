"""Firmware with known flaws (S22) and what firmware is known to do (S20, data outputs): tables that come with
the package. They guarantee nothing, and a device may lie about its version: see docs/build/devices.md.
"""

from firmware_bridge.advisories.firmware import has_anti_exfil
from firmware_bridge.advisories.lists import Advisory, Severity, firmware_known, known_flaws

__all__ = ["Advisory", "Severity", "firmware_known", "has_anti_exfil", "known_flaws"]
