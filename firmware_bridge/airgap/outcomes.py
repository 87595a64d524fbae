"""Outcomes without a cable: the same leaves of `BridgeError` and the same codes, in the words of cards, files and QR codes.

The card, the file and the camera stand for the device here: what they cannot do, the device could not do.
"""

from firmware_bridge.errors import BridgeError, DeviceFault, Disconnected, NoPermission, Unsupported


class Unreadable(DeviceFault):
    """What was read is not what it should be: damaged, of another kind, too large."""

    hint = "Save or show it again on the device, and read it again."

    def __init__(self, sentence: str, *, detail: str | None = None) -> None:
        # Past the sentence of `DeviceFault`, which blames a device that was never asked.
        BridgeError.__init__(self, sentence, detail=detail)


class OtherTransfer(Unreadable):
    """A QR code of another series than the one that is being read. What was read so far is kept."""

    hint = "Point the camera at one series only; to read another one, start over."


class OtherTransaction(Unreadable):
    """A sound answer to another request."""

    hint = "Choose the file that the device wrote for this transaction; the names of both begin alike."


class NothingSigned(Unreadable):
    """It is the right transaction, and has no new signature of this signer."""

    hint = "Sign on the device first, then take what it wrote: its name ends in -part.psbt or -signed.psbt."


class FinalTransaction(Unsupported):
    """A complete transaction in place of a signed PSBT, as Coldcard's `-final.txn`."""

    sentence = "This is a finalised transaction; it is not needed here, and its signatures are not taken."
    hint = "Choose the PSBT that the device wrote beside it: its name ends in -part.psbt or -signed.psbt."


class TooMuchForCodes(Unsupported):
    """More bytes than a series of QR codes of this size carries."""

    sentence = "This transaction is too large for QR codes of this size."
    hint = "Use a card, larger QR codes, or several transactions with fewer inputs."


class NameTaken(DeviceFault):
    """Another file has the name already. It was not touched."""

    hint = "Choose another label, or remove the old file yourself."

    def __init__(self, name: str) -> None:
        BridgeError.__init__(self, f"There is another file called {name} already; it was left as it is.")


class NoCard(Disconnected):
    """The card, the folder or the file is not there."""

    sentence = "The card, folder or file is not there."
    hint = "Insert the card, look at its name, and repeat."


class CardProtected(NoPermission):
    """It may not be read or written."""

    sentence = "The card or folder does not let this program read or write."
    hint = "Check the card's lock and who may write to it."


class CardFault(DeviceFault):
    """Reading or writing failed: full, torn out, worn."""

    hint = "Check that the card has room and is well seated, or use another card."

    def __init__(self, detail: str | None) -> None:
        BridgeError.__init__(self, f"The card failed: {detail or 'without a reason'}.", detail=detail)
