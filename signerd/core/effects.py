"""What the core asks of the outside: frozen values, performed by the runner after they are recorded."""

from dataclasses import dataclass, field
from enum import StrEnum

from multisig import Fingerprint, Policy


@dataclass(frozen=True)
class AskPerson:
    """Show the proposal and wait for a yes or a no. ``screen``: what the device will not show, in words; else empty."""

    psbt_id: str
    screen: str = ""


@dataclass(frozen=True)
class FindDevice:
    """Wait until the device with this fingerprint is ready."""

    psbt_id: str
    fingerprint: Fingerprint


@dataclass(frozen=True)
class SignOnDevice:
    """Ask the device. Performed at most once for each recorded *signing*."""

    psbt_id: str
    psbt: bytes = field(repr=False)
    policy: Policy
    fingerprint: Fingerprint
    device: str


@dataclass(frozen=True)
class Submit:
    """Send these stored bytes under this key; safe to repeat."""

    psbt_id: str
    workspace_id: int
    psbt: bytes = field(repr=False)
    idempotency_key: str


@dataclass(frozen=True)
class SubmitDecline:
    """Tell the platform of the person's no; safe to repeat."""

    psbt_id: str
    workspace_id: int
    reason: str
    idempotency_key: str


class Level(StrEnum):
    INFO = "info"
    ATTENTION = "attention"
    ALARM = "alarm"


# What is told about no proposal and no vault.
REGISTRATION = "registration"


@dataclass(frozen=True)
class Notify:
    """Tell the person something that needs no answer: about a proposal, a vault, or the registration."""

    psbt_id: str
    level: Level
    sentence: str


@dataclass(frozen=True)
class ReadKeys:
    """The platform spoke of our key as revoked: read what it says of our keys, now."""


Effect = AskPerson | FindDevice | SignOnDevice | Submit | SubmitDecline | Notify | ReadKeys
