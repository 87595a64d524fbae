"""From the platform's shapes to the core's values."""

import base64
import binascii
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from custody.schemas.common import TextId
from custody.schemas.proposals import Proposal
from custody.schemas.vaults import Vault as VaultShape
from signerd.core.claims import VaultClaim
from signerd.core.text import plain
from signerd.core.values import Snapshot
from signerd.errors import PlatformAnswersWrongly


@dataclass(frozen=True)
class Workspace:
    """``network``: "mainnet" or "testnet"."""

    id: int
    name: str
    network: str


_ID = TypeAdapter(TextId)


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
    )


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
