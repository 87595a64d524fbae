"""UR 2: a file as one text, or as an endless series of them (BCR-2020-005, BCR-2020-006), in bytewords
(BCR-2020-012).

ur:crypto-psbt/<bytewords>              the whole message
ur:crypto-psbt/12-9/<bytewords>         part 12 of a message in 9 fragments
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Final, Self

from firmware_bridge.airgap import cbor, fountain
from firmware_bridge.airgap.transfer import MAX_TEXT, BadTransfer, Content, OtherTransfer, Received, Transfer
from firmware_bridge.airgap.ur_keys import KEY_TYPES, key_lines

PREFIX: Final = "UR:"
# Texts of about 450 characters, QR version 11: readable for the small cameras of signing devices.
DEFAULT_FRAGMENT: Final = 200
_CRYPTO_PSBT: Final = "crypto-psbt"
# `crypto-psbt` was renamed in 2023; devices write the old name. `bytes` is for content without a type. Keys
# become lines of text, as in a file.
_TYPES: Final = {
    _CRYPTO_PSBT: Content.PSBT,
    "psbt": Content.PSBT,
    "bytes": Content.BINARY,
    **dict.fromkeys(KEY_TYPES, Content.TEXT),
}
_NAMES: Final = {Content.PSBT: _CRYPTO_PSBT, Content.BINARY: "bytes"}
_TEXT = re.compile(r"ur:([a-z0-9-]{1,32})(?:/([1-9][0-9]{0,9})-([1-9][0-9]{0,3}))?/([a-z]+)", re.ASCII)


def split(
    data: bytes, content: Content = Content.PSBT, *, max_fragment: int = DEFAULT_FRAGMENT, first: int = 1
) -> Iterator[str]:
    """An endless series of texts, in capitals for QR codes: show one after the other until the device has
    enough.

    Data that fits into one part is one text, repeated. A series starts at part `first`.

    :raises ValueError: no data, too much for a series of such fragments, or content without a UR type.
    """
    if not data or content not in _NAMES:
        raise ValueError("there must be data, and UR carries PSBTs and plain bytes")
    message, name = cbor.byte_string(data), _NAMES[content]
    if len(message) <= max_fragment:
        return repeat(f"ur:{name}/{encode(message)}".upper())
    return (_text(name, part) for part in fountain.parts(message, max_fragment, first=first))


def _text(name: str, part: fountain.Part) -> str:
    sequence = f"{part.number}-{part.shape.fragments}"
    return f"ur:{name}/{sequence}/{encode(part.to_cbor())}".upper()


@dataclass(frozen=True)
class _Text:
    """One parsed text. `part` is None if the text is the whole message."""

    name: str
    body: bytes
    part: fountain.Part | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """:raises BadTransfer: not a UR, or of another type."""
        match = _TEXT.fullmatch(text.lower()) if len(text) <= MAX_TEXT and text.isascii() else None
        if match is None:
            raise BadTransfer("This QR code is not a UR of version 2.")
        name, number, fragments = match[1], match[2], match[3]
        if name not in _TYPES:
            raise BadTransfer(f"This QR code holds a {name}; a PSBT, a key or a file is expected.")
        body = decode(match[4])
        if number is None:
            return cls(name, body, None)
        part = fountain.Part.from_cbor(body)
        if (part.number, part.shape.fragments) != (int(number), int(fragments)):
            raise BadTransfer("This QR code contradicts itself.")
        return cls(name, body, part)


class UrAssembler:
    """Assembles one UR."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._whole: bytes | None = None
        self._parts = fountain.Collector()
        self.result: Transfer | None = None

    def add(self, text: str) -> Received:
        """:raises BadTransfer: not a valid part; `OtherTransfer` if it belongs to another series."""
        parsed = _Text.parse(text)
        if self._started and parsed.name != self._name:
            raise OtherTransfer
        received = self._add_whole(parsed.body) if parsed.part is None else self._add_part(parsed.part)
        message = self._whole or self._parts.message
        self._name = parsed.name
        if message is not None and self.result is None:
            self.result = Transfer(_TYPES[parsed.name], self._open(parsed.name, message))
        return received

    def _open(self, name: str, message: bytes) -> bytes:
        """:raises BadTransfer: the message is complete, but not what its type says; all is reset."""
        try:
            return key_lines(name, message).encode() if name in KEY_TYPES else _content(message)
        except BadTransfer:
            self._name, self._whole, self._parts = None, None, fountain.Collector()
            raise

    @property
    def _started(self) -> bool:
        return self._whole is not None or self._parts.started

    def _add_whole(self, body: bytes) -> Received:
        if self._parts.started or self._whole not in {None, body}:
            raise OtherTransfer
        self._whole = body
        return Received(1, 1)

    def _add_part(self, part: fountain.Part) -> Received:
        if self._whole is not None:
            raise OtherTransfer
        return self._parts.add(part)


def _content(message: bytes) -> bytes:
    data = cbor.item_of(message)
    if not isinstance(data, bytes):
        raise BadTransfer("This QR code holds no file.")
    return data


# The sorted word list. The minimal form of a word is its first and last letter.
_WORDS: Final = """
    able acid also apex aqua arch atom aunt away axis back bald barn belt beta bias blue body brag brew bulb
    buzz calm cash cats chef city claw code cola cook cost crux curl cusp cyan dark data days deli dice diet
    door down draw drop drum dull duty each easy echo edge epic even exam exit eyes fact fair fern figs film
    fish fizz flap flew flux foxy free frog fuel fund gala game gear gems gift girl glow good gray grim guru
    gush gyro half hang hard hawk heat help high hill holy hope horn huts iced idea idle inch inky into iris
    iron item jade jazz join jolt jowl judo jugs jump junk jury keep keno kept keys kick kiln king kite kiwi
    knob lamb lava lazy leaf legs liar limp lion list logo loud love luau luck lung main many math maze memo
    menu meow mild mint miss monk nail navy need news next noon note numb obey oboe omit onyx open oval owls
    paid part peck play plus poem pool pose puff puma purr quad quiz race ramp real redo rich road rock roof
    ruby ruin runs rust safe saga scar sets silk skew slot soap solo song stub surf swan taco task taxi tent
    tied time tiny toil tomb toys trip tuna twin ugly undo unit urge user vast very veto vial vibe view visa
    void vows wall wand warm wasp wave waxy webs what when whiz wolf work yank yawn yell yoga yurt zaps zero
    zest zinc zone zoom
""".split()  # noqa: SIM905 - four lines of words read better than a page of quotes
_PAIRS: Final = tuple(word[0] + word[-1] for word in _WORDS)
_VALUES: Final = {pair: value for value, pair in enumerate(_PAIRS)}
_CHECKSUM: Final = 4


def encode(data: bytes) -> str:
    return "".join(_PAIRS[value] for value in data + zlib.crc32(data).to_bytes(_CHECKSUM))


def decode(text: str) -> bytes:
    """The bytes of minimal bytewords in lower case, without their CRC-32.

    :raises BadTransfer: not bytewords, or a wrong checksum.
    """
    try:
        data = bytes(_VALUES[text[start : start + 2]] for start in range(0, len(text), 2))
    except KeyError:
        raise BadTransfer("This QR code holds letters that are not bytewords.") from None
    body, checksum = data[:-_CHECKSUM], data[-_CHECKSUM:]
    if not body or zlib.crc32(body).to_bytes(_CHECKSUM) != checksum:
        raise BadTransfer("This QR code's checksum is wrong.")
    return body
