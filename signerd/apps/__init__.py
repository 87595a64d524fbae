"""Letting apps in: what they ask, what the person answers, and the tokens that come of it (ADR 19)."""

from signerd.apps.paired import PairedApps

__all__ = ["PairedApps"]
