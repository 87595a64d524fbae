"""Proofs of control as files: what a vault signed, to be checked without the platform (BIP-322)."""

import re
from typing import Annotated, Final, Literal

from pydantic import Field, StrictBool, StringConstraints, model_validator

from custody.schemas.call import WORKSPACE_MANAGERS, Call, Way
from custody.schemas.common import (
    MAX_PSBT_BASE64,
    ChainName,
    Count,
    Few,
    Label,
    Prose,
    Sats,
    Shape,
    TextId,
    VaultRequest,
    WorkspaceQuery,
)
from custody.schemas.errors import ErrorCode
from custody.schemas.proposals import PROPOSAL_READERS, AddressText, CreatePsbtResponse, OutpointText

FORMAT: Final = "bip322-proof-v1"
MAX_SIGNATURES: Final = 100
# So many characters of base64 at most, behind a prefix of three letters.
SignatureText = Annotated[str, StringConstraints(min_length=3, max_length=MAX_PSBT_BASE64 + 3)]
BlockHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class SignedFor(Shape):
    """One address, and its signature of the message in BIP-322's text form."""

    address: Label
    signature: SignatureText


class CoinOfProof(Shape):
    """A coin that the file speaks of. It is the file's claim until a signature or the chain says the same."""

    outpoint: OutpointText
    amount_sats: Sats
    address: Label


class ProofFile(Shape):
    """A message, the addresses that signed it, and the coins that it speaks of, as they were at a block.

    ``height`` and ``block_hash`` are null where it speaks of no coins.
    """

    format: Literal["bip322-proof-v1"] = FORMAT
    network: ChainName
    message: Prose
    signatures: Annotated[list[SignedFor], Field(min_length=1, max_length=MAX_SIGNATURES)]
    height: Count | None = None
    block_hash: BlockHash | None = None
    coins: Few[CoinOfProof] = Field(default_factory=list)

    @model_validator(mode="after")
    def _nothing_twice(self) -> "ProofFile":
        addresses = [signed.address for signed in self.signatures]
        if len(set(addresses)) != len(addresses):
            raise ValueError("signatures: each address signs once")
        outpoints = [coin.outpoint for coin in self.coins]
        if len(set(outpoints)) != len(outpoints):
            raise ValueError("coins: a coin that is named twice would be counted twice")
        if (self.height is None) is not (self.block_hash is None):
            raise ValueError("height: a block has both, its height and its hash")
        if self.coins and self.height is None:
            raise ValueError("height: coins are spoken of as they were at a block")
        return self


# With the words about the block a device still shows it whole (multisig.bip322, MAX_SHOWN_CHARACTERS).
MAX_MESSAGE: Final = 230
AT_BLOCK: Final = " (block {height}, {hash})"
_AT_BLOCK: Final = re.compile(r" \(block ([0-9]{1,9}), ([0-9a-f]{64})\)\Z", re.ASCII)


def block_named(message: str) -> tuple[int, str] | None:
    """Height and hash of the block that a message names as ``create-proof`` writes it: it was not signed
    before that block was known.
    """
    match = _AT_BLOCK.search(message)
    return None if match is None else (int(match[1]), match[2])


class CreateProofRequest(VaultRequest):
    """``message``: one line of printable ASCII; the last block's height and hash are added to it, so that the proof is no older than
    that. ``address``: of the vault, which signs; its first one where none is given. ``with_coins``: the vault's confirmed coins are
    named and signed for, the largest 250 at most.
    """  # noqa: E501

    message: Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=MAX_MESSAGE)]
    address: AddressText | None = None
    with_coins: StrictBool = False


class ProofQuery(WorkspaceQuery):
    psbt_id: TextId


CREATE_PROOF = Call(
    "POST", "/api/v1/create-proof", CreateProofRequest, CreatePsbtResponse,
    "Asks a vault's signers to sign a message (BIP-322) that proves control of an address, and of coins. It "
    "moves nothing, locks\nnothing, and never reaches the network. They sign it through ``sign-psbt``.",
    WORKSPACE_MANAGERS, creates=True, attempt="ask for a proof", open_to=frozenset({Way.PROGRAM}),
    refuses=(ErrorCode.BACKEND_UNAVAILABLE, ErrorCode.STATE_CONFLICT, ErrorCode.VAULT_FROZEN),
)  # fmt: skip
PROOF = Call(
    "GET", "/api/v1/proof", ProofQuery, ProofFile,
    "The file of a proof that has enough signatures: ``custody proof verify`` checks it without the "
    "platform.",
    PROPOSAL_READERS, attempt="see a proof", open_to=frozenset({Way.PROGRAM}),
    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
