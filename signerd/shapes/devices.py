"""Devices, and the keys that one of them registers."""

from signerd.shapes.common import Answer, Digest, Id, Request


class AdvisoryView(Answer):
    """A known flaw of a device's firmware (S22). ``severity``: "stop-using" or "warn"; ``sources``: where to read on."""

    id: str
    severity: str
    text: str
    advice: str
    sources: tuple[str, ...]


class DeviceView(Answer):
    """``advice`` says what to do where the device is not ready; ``label`` and ``firmware`` are the device's own words.
    ``emulator``: it is a program at an address, not a thing on the bus.

    ``advisories``: what is known to be wrong with its firmware, the worst first.
    """

    id: str
    family: str
    model: str
    label: str | None
    endpoint: str
    state: str
    fingerprint: str | None
    emulator: bool
    detail: str | None
    advice: str | None
    firmware: str | None = None
    advisories: tuple[AdvisoryView, ...] = ()


class KeyView(Answer):
    """``purpose``: "vault" or "profile"; ``path`` starts with ``m/``."""

    purpose: str
    account: int
    path: str
    xpub: str


class RegistrationPreview(Answer):
    """What the device gives and would be registered; ``digest`` is what the person's yes is bound to.

    ``advisories`` are known flaws of its firmware, ``notes`` what else to know before it is trusted with keys.
    """

    network: str
    device_id: str
    device: str
    fingerprint: str
    keys: tuple[KeyView, ...]
    digest: str
    firmware: str | None = None
    advisories: tuple[AdvisoryView, ...] = ()
    notes: tuple[str, ...] = ()


class RegisterRequest(Request):
    """``replace``: put these keys in the place of those that the account has registered before."""

    device_id: Id
    digest: Digest
    replace: bool = False


class Registered(Answer):
    key_id: str
    network: str
    fingerprint: str
    label: str
