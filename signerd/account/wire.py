"""From the platform's shapes to the core's values."""

import base64
import binascii
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from custody.schemas.asset_tokens import Contract
from custody.schemas.common import TextId
from custody.schemas.proposals import DecodedCall, Proposal
from custody.schemas.vaults import Vault as VaultShape
from multisig.tokens import MAX_BYTECODE_BYTES
from signerd.core.claims import VaultClaim
from signerd.core.text import plain
from signerd.core.tokens import Published, TokenClaim, flag
from signerd.core.values import Snapshot
from signerd.errors import PlatformAnswersWrongly


@dataclass(frozen=True)
class Workspace:
    """``network``: "mainnet" or "testnet"."""

    id: int
    name: str
    network: str


_ID = TypeAdapter(TextId)
# A standard transaction has 400,000 weight units: as many bytes at most.
_MAX_DEPLOYMENT_HEX = 2 * 400_000


def known_id(text: str) -> str:
    """An id as the platform promises them; another one would not come back from a call that names it.

    Raises:
        PlatformAnswersWrongly.
    """
    try:
        return _ID.validate_python(text)
    except ValidationError:
        raise PlatformAnswersWrongly(f"the platform gives an id that is none: {plain(text)[:80]!r}") from None


def snapshot_of(shape: Proposal, workspace: Workspace) -> Snapshot:
    """Raises PlatformAnswersWrongly for ids that are none."""
    return Snapshot(
        psbt_id=known_id(shape.psbt_id),
        workspace_id=workspace.id,
        workspace_network=workspace.network,
        vault_id=known_id(shape.vault_id),
        kind=shape.tx_type,
        status=shape.status,
        psbt=_psbt_bytes(shape.psbt_base64),
        recipients=tuple(shape.recipients),
        amounts=tuple(shape.amounts_sats),
        op_return=shape.op_return,
        fee=shape.fee_sats,
        txid_expected=shape.txid_expected,
        description=shape.description or "",
        created_by=shape.created_by,
        required=shape.required_signatures,
        collected=shape.collected_signatures,
        txid=shape.txid,
        confirmations=shape.confirmations,
        replaces=shape.replaces_psbt_id,
        call=_claim(shape.decoded_call),
        contract_uid=shape.contract_uid,
    )


def _claim(told: DecodedCall | None) -> TokenClaim | None:
    if told is None:
        return None
    members = told.model_dump(exclude_none=True, exclude={"words"})
    return TokenClaim(tuple((name, _word(value)) for name, value in sorted(members.items())))


def _word(value: str | int | bool) -> str:
    return flag(value) if isinstance(value, bool) else str(value)


def published_of(shape: Contract) -> Published:
    """Raises PlatformAnswersWrongly where it shows none, or more than there may be."""
    if shape.bytecode is None:
        raise PlatformAnswersWrongly("the platform does not show the token's bytecode")
    deployment = shape.deployment_hex
    if len(shape.bytecode) > MAX_BYTECODE_BYTES or len(deployment or "") > _MAX_DEPLOYMENT_HEX:
        raise PlatformAnswersWrongly("the platform shows a token that is longer than a token may be")
    try:
        raw = None if deployment is None else bytes.fromhex(deployment)
    except ValueError:
        raise PlatformAnswersWrongly("the platform shows a deployment that is no hex") from None
    return Published(shape.bytecode.encode(), raw)


def _psbt_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # Kept as it came: the review refuses it with the parser's reason.
        return text.encode()


def claim_of(shape: VaultShape, workspace: Workspace) -> VaultClaim:
    """Raises PlatformAnswersWrongly for ids that are none."""
    return VaultClaim(
        known_id(shape.id), workspace.id, shape.name, shape.descriptor, shape.m, shape.n, shape.address
    )
