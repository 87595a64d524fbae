"""The PSBT itself: parsed strictly, written canonically."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace

from multisig.errors import InvalidPsbt, PsbtTooLarge
from multisig.keys import ExtendedPublicKey, KeyOrigin
from multisig.psbt.codec import decode_psbt, encode_psbt, encode_skeleton
from multisig.psbt.embit_reader import require_same_reading
from multisig.psbt.fields import PsbtInput, PsbtLimits, PsbtOutput
from multisig.shown import ByMember
from multisig.transaction import Transaction

DEFAULT_LIMITS = PsbtLimits()


@dataclass(frozen=True, slots=True, repr=False)
class Psbt(ByMember):
    """A partially signed transaction, version 0 (BIP-174).

    `tx` is the unsigned transaction; `inputs` and `outputs` follow its order. `signed_message` claims that it
    is the proof of a message (BIP-322), in UTF-8. Equal values serialise to
    equal bytes. Building one raises InvalidPsbt where the inputs and outputs are not the transaction's.
    """

    tx: Transaction
    inputs: tuple[PsbtInput, ...]
    outputs: tuple[PsbtOutput, ...]
    xpubs: tuple[tuple[ExtendedPublicKey, KeyOrigin], ...] = ()
    signed_message: bytes | None = None

    def __post_init__(self) -> None:
        # The input that is checked must be the input that is signed.
        stated = [(item.outpoint, item.sequence) for item in self.inputs]
        if stated != [(item.outpoint, item.sequence) for item in self.tx.inputs]:
            raise InvalidPsbt("The PSBT's inputs are not those of its transaction.")
        paid = [(output.amount, output.script_pubkey) for output in self.outputs]
        if paid != [(output.amount, output.script_pubkey) for output in self.tx.outputs]:
            raise InvalidPsbt("The PSBT's outputs are not those of its transaction.")

    @classmethod
    def parse(cls, data: bytes | str, limits: PsbtLimits = DEFAULT_LIMITS) -> "Psbt":
        """Read a PSBT from its bytes, or from base64 text (white space around it is dropped).

        Raises PsbtTooLarge before anything is parsed, else InvalidPsbt.
        """
        raw = raw_psbt(data, limits)
        decoded = decode_psbt(raw, limits)
        psbt = cls(decoded.tx, decoded.inputs, decoded.outputs, decoded.xpubs, decoded.signed_message)
        require_same_reading(encode_skeleton(psbt.tx, psbt.inputs, psbt.outputs), psbt.tx)
        return psbt

    def to_bytes(self) -> bytes:
        return encode_psbt(self.tx, self.inputs, self.outputs, self.xpubs, self.signed_message)

    def to_base64(self) -> str:
        return base64.b64encode(self.to_bytes()).decode("ascii")

    def with_signatures(self, signatures: Mapping[int, Mapping[bytes, bytes]]) -> "Psbt":
        """The same PSBT with more partial signatures: input index to public key to DER with sighash byte.

        Nothing is verified here (`multisig.signatures` does that). Raises InvalidPsbt where there is no
        such input.
        """
        if any(not 0 <= index < len(self.inputs) for index in signatures):
            raise InvalidPsbt("A signature is for an input that the PSBT does not have.")
        inputs = tuple(
            replace(item, partial_signatures={**item.partial_signatures, **signatures[index]})
            if signatures.get(index)
            else item
            for index, item in enumerate(self.inputs)
        )
        return replace(self, inputs=inputs)

    def without_signatures(self) -> "Psbt":
        """The same PSBT with nothing signed or finalised."""
        inputs = (
            replace(item, partial_signatures={}, final_script_sig=None, final_script_witness=None)
            for item in self.inputs
        )
        return replace(self, inputs=tuple(inputs))


def raw_psbt(data: bytes | str, limits: PsbtLimits) -> bytes:
    """The bytes of a PSBT, or of its base64 text, within the limits. Raises PsbtTooLarge, InvalidPsbt."""
    raw = _from_base64(data, limits) if isinstance(data, str) else data
    if len(raw) > limits.max_bytes:
        raise PsbtTooLarge(f"The PSBT has {len(raw)} bytes; at most {limits.max_bytes} are accepted.")
    return raw


def _from_base64(text: str, limits: PsbtLimits) -> bytes:
    # Four characters carry three bytes; the rest is padding and white space around the text.
    if len(text) > limits.max_bytes // 3 * 4 + 64:
        raise PsbtTooLarge(f"The PSBT is longer than {limits.max_bytes} bytes of base64.")
    try:
        return base64.b64decode(text.strip().encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise InvalidPsbt("The PSBT is not valid base64.") from error
