"""Devices, the keys that one of them registers, and what they ask while they are unlocked."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

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


# A Trezor takes 50 bytes of a passphrase, a PIN has 50 places at most: the device's own limit is told by the device.
MAX_ANSWER = 200


class QuestionView(Answer):
    """An open question. ``kind``: "pin", "passphrase", "password" or "pairing"; ``text``: what the device told before it asked.

    A PIN is answered with the places of its digits in the matrix on the device, 7 8 9 above 4 5 6 above 1 2 3. A pairing is
    answered with any text once the code in ``text`` stands on the device, and with null else.
    """

    id: Id
    device_id: str
    device: str
    kind: str
    text: str
    seconds_left: int


class UnlockStep(Answer):
    """Where an unlocking is. ``question``: what is to be answered next, where the state is "asks".

    ``text``: what the device does or waits for. ``device``: as it is now, where the state is "unlocked".
    """

    device_id: str
    state: Literal["asks", "works", "unlocked"]
    text: str = ""
    question: QuestionView | None = None
    device: DeviceView | None = None


class QuestionAnswer(Request):
    """``answer``: null leaves it to the device where that can be, and else gives up."""

    answer: Annotated[str, StringConstraints(max_length=MAX_ANSWER)] | None = Field(repr=False)
