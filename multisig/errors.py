"""The errors of this package.

The text of an error is a sentence saying what is wrong; `hint` says what to do about it; `code` never
changes.
"""

from typing import ClassVar


class MultisigError(Exception):
    """The base class of every error that this package raises."""

    code: ClassVar[str] = "multisig"
    hint: str = "Check what was entered or received."

    def __init__(self, sentence: str, *, hint: str | None = None) -> None:
        super().__init__(sentence)
        if hint is not None:
            self.hint = hint


class InvalidKey(MultisigError):
    """A public key, extended key, fingerprint or key with origin that cannot be used."""

    code = "invalid-key"
    hint = "Export the key from the device again and paste it unchanged."


class InvalidPath(MultisigError):
    """A derivation path or an index that is malformed or out of bounds."""

    code = "invalid-path"
    hint = "Write the path like m/48h/1h/0h/2h, or on mainnet m/48h/0h/0h/2h."


class InvalidDescriptor(MultisigError):
    """A descriptor that is malformed, mistyped, or a quorum that is not allowed."""

    code = "invalid-descriptor"


class InvalidAddress(MultisigError):
    """An address that is mistyped or of a kind that is not paid."""

    code = "invalid-address"
    hint = "Ask the receiver for the address again and copy it whole."


class WrongNetwork(MultisigError):
    """A key, path or address of another Bitcoin network than the one at hand."""

    code = "wrong-network"
    hint = "Use a key or address of the network this vault lives on."


class InvalidAmount(MultisigError):
    """An amount or a fee rate that is malformed or out of range."""

    code = "invalid-amount"
    hint = "Write the amount as plain decimal digits with at most eight decimal places."


class InvalidMessage(MultisigError):
    """A signed message whose signature no key can have made."""

    code = "invalid-message"
    hint = "Sign the message on the device again."


class InvalidTransaction(MultisigError):
    """Bytes that are not a transaction, or a script that cannot be part of ours."""

    code = "invalid-transaction"
    hint = "Fetch the transaction again; if it stays so, its source is broken or lies."


class InvalidToken(MultisigError):
    """Token data or bytecode that is malformed, out of range, or not in its one canonical form."""

    code = "invalid-token"
    hint = "Do not sign it; ask the maker of the transaction to build it again."


class InvalidPsbt(MultisigError):
    """Bytes that are not a PSBT of version 0, or one that contradicts itself."""

    code = "invalid-psbt"
    hint = "Create or export the PSBT again, as version 0."


class PsbtTooLarge(MultisigError):
    """A PSBT beyond the limits; no more of it was read than it took to see that."""

    code = "psbt-too-large"
    hint = "Split the payment into several transactions with fewer inputs or outputs."


class PsbtMismatch(MultisigError):
    """A PSBT that is not about the same unsigned transaction."""

    code = "psbt-mismatch"
    hint = "Sign the transaction that was proposed, without any change to it."


class BadSignature(MultisigError):
    """A signature that is malformed, by another key, or over another transaction. `input_index` names the
    input, if known.
    """

    code = "bad-signature"
    hint = "Do not use this signature; sign again on the device that was registered."

    def __init__(self, sentence: str, input_index: int | None = None, *, hint: str | None = None) -> None:
        super().__init__(sentence, hint=hint)
        self.input_index = input_index


class ForeignSignature(BadSignature):
    """A signature by a key that is not of this vault, or not of the signer it came from."""

    code = "foreign-signature"
    hint = "Sign with the device that was registered as a cosigner of this vault."


class NotFinalisable(MultisigError):
    """Too few verified signatures on some input."""

    code = "not-finalisable"
    hint = "Collect the missing signatures first."
