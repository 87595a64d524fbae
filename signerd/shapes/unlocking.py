"""What a device asks of the person while it is unlocked."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from signerd.shapes.common import Answer, Id, Request
from signerd.shapes.devices import DeviceView

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
