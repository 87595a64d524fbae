"""What a Coldcard Mk4 with firmware 5.4 accepts. Shared by the framing, the commands and the checks."""

from typing import Final

PACKET_SIZE: Final = 64  # one HID report, and one datagram
PAYLOAD_SIZE: Final = 63  # the first byte is the header
MAX_BLOCK: Final = 2048  # data in one upload or download message
MAX_MESSAGE: Final = 12 + MAX_BLOCK  # command, offset, total, block
MIN_MESSAGE: Final = 4  # the command alone
BLOCK_ALIGNMENT: Final = 256  # uploads go to pages of its memory

MAX_PSBT: Final = 2 * 1024 * 1024
SMALL_PSBT: Final = dict.fromkeys(("mk1", "mk2", "mk3"), 384 * 1024)  # before the Mk4
MAX_UPLOAD: Final = 2 * MAX_PSBT
MIN_PSBT: Final = 51

MIN_ENROLMENT: Final = 101
MAX_ENROLMENT: Final = 4_000
MAX_WALLET_NAME: Final = 20
MAX_COSIGNERS: Final = 15

MIN_TEXT: Final = 2
MAX_TEXT: Final = 240
MAX_SPACES_TOGETHER: Final = 2

MAX_PATH_DEPTH: Final = 12
MAX_FEE_PERCENT: Final = 10  # refused from here on
WARN_FEE_PERCENT: Final = 5  # warned from here on
