"""How far the Bitcoin app is with a transaction, by what it asks its host for: nothing else tells.

The app reads every input three times before it shows anything (app-bitcoin-new 2.4.0 to 2.4.6, src/handler/sign_psbt.c:
preprocess_inputs, and twice in compute_tx_hashes), and once more for each signature. Of a version that nobody has read, be it the next of
2.4, that is not known here: it may ask as soon as it has read the inputs once.
"""

from typing import Final

from hwilib.devices.ledger_bitcoin.client_command import ByteStreamParser, ClientCommandCode

from firmware_bridge.port import Caller

_ROOT_BYTES: Final = 32
# Version of the app, how often it reads each input before it asks.
_READINGS: Final = dict.fromkeys(("2.4.0", "2.4.1", "2.4.2", "2.4.3", "2.4.4", "2.4.5", "2.4.6"), 3)


class Loading:
    """Follows one SIGN_PSBT command, and tells the caller."""

    def __init__(self, caller: Caller, inputs: int, version: str) -> None:
        self._caller = caller
        self._inputs = inputs
        self._readings = _READINGS.get(version)
        self._root = b""
        self._read = 0
        self._signing = False
        self._signed = 0

    def started(self, data: bytes) -> None:
        """`data`: what the command commits to (doc/bitcoin.md, SIGN_PSBT)."""
        parser = ByteStreamParser(data)
        parser.read_varint()
        parser.read_bytes(2 * _ROOT_BYTES)
        parser.read_varint()
        self._root = parser.read_bytes(_ROOT_BYTES)
        self._tell_sent(0)

    def may_ask(self) -> bool:
        """Whether the app may be asking its person now."""
        return self._read >= (self._readings or 1) and not self._signing

    def requested(self, request: bytes) -> None:
        """The app asks its host for this, or hands over a signature."""
        if request[:1] == bytes([ClientCommandCode.YIELD]):
            self._tell_signed()
        elif request[: 1 + _ROOT_BYTES] == bytes([ClientCommandCode.GET_MERKLE_LEAF_PROOF]) + self._root:
            parser = ByteStreamParser(request[1 + _ROOT_BYTES :])
            parser.read_varint()
            self._reads(parser.read_varint())

    def _reads(self, index: int) -> None:
        if self._readings is not None and self._read >= self._readings:
            # Nothing is left to be read but what is signed now: the person has said yes.
            if not self._signing:
                self._signing = True
                self._caller.tell("signing", "The device signs", 0, self._inputs)
            return
        if self._read == 0 and index > 0:
            self._tell_sent(index)
        elif self._read == 1 and index == 0:
            self._tell_sent(self._inputs)
        if index == self._inputs - 1:
            self._read += 1

    def _tell_sent(self, done: int) -> None:
        text = (
            f"Sent input {done} of {self._inputs} to the device"
            if done
            else "Sending the transaction to the device"
        )
        self._caller.tell("sending", text, done, self._inputs)

    def _tell_signed(self) -> None:
        self._signing = True
        # A device that yields more than it was asked for is dealt with by whoever takes the signatures.
        self._signed = min(self._signed + 1, self._inputs)
        self._caller.tell(
            "signing", f"Signed input {self._signed} of {self._inputs}", self._signed, self._inputs
        )
