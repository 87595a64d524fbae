"""Pairing apps: requests, the person's answers, and bearer tokens (ADR 19)."""

from signerd.apps.paired import PairedApps

__all__ = ["PairedApps"]
