"""What a Coldcard asks its person, and what becomes of it."""

from typing import Any, Final

from hwilib.devices.ckcc.protocol import CCProtoError

# The device reads, checks and signs without answering anybody meanwhile, and large transactions take minutes. How long that may
# be is the bridge's to decide: this only ends a conversation that it forgot.
ANSWER_MS: Final = 30_000
_ANSWER_MS_PER_BYTE: Final = 0.5
# What it says where it asks nothing any more: the person is done with the question, whatever came of it.
_NOTHING_OPEN: Final = "no active request"


def patience(size: int) -> int:
    """How long the device may work on so many bytes without answering, in milliseconds."""
    return ANSWER_MS + int(_ANSWER_MS_PER_BYTE * size)


def is_nothing_open(error: CCProtoError) -> bool:
    return _NOTHING_OPEN in str(error).lower()


class Question:
    """`poll` is the command that asks what became of it.

    `packet`: the command that has made the device ask. It may have come in the pause after a refused enrolment, at whose end the firmware
    forgets its active request and still shows it: what is answered then is lost. It is sent once more, in the place of itself.
    """

    def __init__(self, ckcc: Any, poll: bytes, packet: bytes | None = None, size: int = 0) -> None:
        self._ckcc = ckcc
        self._poll = poll
        self._packet = packet
        self._patience = patience(size)

    def ask(self) -> None:
        self._ckcc.send_recv(self._packet, timeout=self._patience)

    def look(self) -> Any:
        """The answer, or None while there is none. It comes when the device has done its own work, and shows the question.

        :raises RuntimeError: refused, failed, or nothing is asked there any more.
        """
        try:
            return self._ckcc.send_recv(self._poll, timeout=self._patience)
        except CCProtoError as over:
            if self._packet is None or not is_nothing_open(over):
                raise
        self.ask()
        self._packet = None
        return None
