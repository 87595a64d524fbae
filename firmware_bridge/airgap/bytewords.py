"""Bytewords in their minimal form: two letters for a byte, a CRC-32 at the end (BCR-2020-012)."""

import zlib
from typing import Final

from firmware_bridge.airgap.outcomes import Unreadable

# The word list is sorted; its words are known by their first and last letters alone, in which UR writes them.
_WORDS: Final = """
    able acid also apex aqua arch atom aunt away axis back bald barn belt beta bias blue body brag brew bulb buzz calm cash
    cats chef city claw code cola cook cost crux curl cusp cyan dark data days deli dice diet door down draw drop drum dull
    duty each easy echo edge epic even exam exit eyes fact fair fern figs film fish fizz flap flew flux foxy free frog fuel
    fund gala game gear gems gift girl glow good gray grim guru gush gyro half hang hard hawk heat help high hill holy hope
    horn huts iced idea idle inch inky into iris iron item jade jazz join jolt jowl judo jugs jump junk jury keep keno kept
    keys kick kiln king kite kiwi knob lamb lava lazy leaf legs liar limp lion list logo loud love luau luck lung main many
    math maze memo menu meow mild mint miss monk nail navy need news next noon note numb obey oboe omit onyx open oval owls
    paid part peck play plus poem pool pose puff puma purr quad quiz race ramp real redo rich road rock roof ruby ruin runs
    rust safe saga scar sets silk skew slot soap solo song stub surf swan taco task taxi tent tied time tiny toil tomb toys
    trip tuna twin ugly undo unit urge user vast very veto vial vibe view visa void vows wall wand warm wasp wave waxy webs
    what when whiz wolf work yank yawn yell yoga yurt zaps zero zest zinc zone zoom
""".split()  # noqa: SIM905 - four lines of words read better than a page of quotes
_PAIRS: Final = tuple(word[0] + word[-1] for word in _WORDS)
_VALUES: Final = {pair: value for value, pair in enumerate(_PAIRS)}
_CHECKSUM: Final = 4


def encode(data: bytes) -> str:
    return "".join(_PAIRS[value] for value in data + zlib.crc32(data).to_bytes(_CHECKSUM))


def decode(text: str) -> bytes:
    """The bytes, from lower-case letters.

    :raises Unreadable: no bytewords, or the checksum is wrong.
    """
    try:
        data = bytes(_VALUES[text[start : start + 2]] for start in range(0, len(text), 2))
    except KeyError:
        raise Unreadable("This QR code holds letters that are no bytewords.") from None
    body, checksum = data[:-_CHECKSUM], data[-_CHECKSUM:]
    if not body or zlib.crc32(body).to_bytes(_CHECKSUM) != checksum:
        raise Unreadable("This QR code's checksum is wrong.")
    return body
