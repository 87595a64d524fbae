"""From the platform's shapes to the core's values."""

import base64
import binascii
from dataclasses import dataclass

from custody.schemas.proposals import Proposal
from custody.schemas.users import User
from custody.schemas.vaults import Vault as VaultShape
from signerd.core.values import Snapshot


@dataclass(frozen=True)
class Workspace:
    """``network``: "mainnet" or "testnet"."""

    id: int
    name: str
    network: str


@dataclass(frozen=True)
class VaultClaim:
    """What the platform says about a vault."""

    vault_id: str
    workspace_id: int
    name: str
    descriptor: str
    threshold: int
    signers: int
    first_address: str


def snapshot_of(shape: Proposal, workspace: Workspace) -> Snapshot:
    return Snapshot(
        psbt_id=shape.psbt_id,
        workspace_id=workspace.id,
        workspace_network=workspace.network,
        vault_id=shape.vault_id,
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
    return VaultClaim(shape.id, workspace.id, shape.name, shape.descriptor, shape.m, shape.n, shape.address)


def workspaces_of(user: User) -> tuple[Workspace, ...]:
    return tuple(
        Workspace(entry.workspace_info.uid, entry.workspace_info.name, entry.workspace_info.net)
        for organisation in user.organisations_info.organisations
        for entry in organisation.workspaces.workspaces
    )
