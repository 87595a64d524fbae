"""Bumps and cancels at a desk, and a signer's daemon's review of them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import httpx

from custody.schemas.proposals import Proposal as Shape
from custody.server.proposals import propose
from custody.server.proposals.drafts import Draft, draft_of
from multisig import Network, Psbt, Vault
from signerd.account.wire import PlatformWorkspace, snapshot_of
from signerd.core.review import ProposalReview, review
from signerd.core.values import OwnKey, Pin, ReviewContext, SigningLimits, Snapshot, VaultClaim
from tests.support.custody import Desk, ok
from tests.support.desk import neighbour


def bump(desk: Desk, psbt_id: str, **changes: object) -> httpx.Response:
    """The same payment at a higher fee."""
    asked = {"recipients": [], "amounts_sats": None, "replaces_psbt_id": psbt_id}
    return desk.propose(**asked | changes)


def take_back(desk: Desk, psbt_id: str, **changes: object) -> httpx.Response:
    return bump(desk, psbt_id, replaces_psbt_id=None, cancels_psbt_id=psbt_id, **changes)


def cancel(desk: Desk, psbt_id: str, **changes: object) -> httpx.Response:
    body = {"psbt_id": psbt_id, "workspace_id": desk.workspace_id}
    return desk.admin.post("/api/v1/cancel-psbt", body | changes)


def made(response: httpx.Response) -> str:
    return ok(response)["psbt_id"]


def finished(desk: Desk, psbt_id: str) -> str:
    """Two signers approve it, and the workers broadcast it."""
    desk.sign_off(psbt_id)
    desk.settle()
    return desk.proposal(psbt_id)["txid_expected"]


def status(desk: Desk, *psbt_ids: str) -> list[str]:
    return [desk.proposal(psbt_id)["status"] for psbt_id in psbt_ids]


@contextmanager
def meanwhile(happen: Callable[[], object], times: int = 1) -> Iterator[list[Draft]]:
    """Runs ``happen`` between each of the first drafts and its storing. Yields all drafts."""
    drafted: list[Draft] = []

    def slow(*args: Any, **named: Any) -> Draft:
        draft = draft_of(*args, **named)
        drafted.append(draft)
        if len(drafted) <= times:
            with patch.object(propose, "draft_of", draft_of):
                happen()
        return draft

    with patch.object(propose, "draft_of", slow):
        yield drafted


def forget_mempool(desk: Desk) -> None:
    """The node restarts with an empty mempool."""
    mempool = desk.chain._mempool
    mempool._entries.clear()
    mempool._spends.clear()


# --- a signer's daemon --------------------------------------------------------------------------------------


def judged(desk: Desk, psbt_id: str, signed: Iterable[str]) -> ProposalReview:
    """The review of a proposal by Alice's daemon, where she has signed the others."""
    vault = Vault.from_descriptor(desk.vault["descriptor"], Network.REGTEST)
    (own,) = [key for key in vault.cosigners if key.origin.fingerprint == desk.devices["alice"].fingerprint]
    context = ReviewContext(
        network=Network.REGTEST,
        limits=SigningLimits(),
        pin=Pin(desk.vault["id"], desk.workspace_id, "Treasury", vault, own),
        claim=VaultClaim(desk.vault["id"], desk.workspace_id, "Treasury", desk.vault["descriptor"]),
        own_keys=(OwnKey(own, "vault", 0),),
        neighbours=tuple(neighbour(Psbt.parse(_snapshot(desk, other).psbt), other) for other in signed),
    )
    return review(_snapshot(desk, psbt_id), context)


def lets_through(desk: Desk, psbt_id: str, signed: Iterable[str]) -> bool:
    """Whether nothing refuses it and nothing warns of what it replaces."""
    found = judged(desk, psbt_id, signed)
    quiet = all(
        verdict.outcome.value == "allow"
        for verdict in found.verdicts
        if verdict.name in {"replacement", "conflict", "paid-twice"}
    )
    return found.allowed and not found.to_acknowledge and quiet


def _snapshot(desk: Desk, psbt_id: str) -> Snapshot:
    shape = Shape.model_validate(desk.proposal(psbt_id))
    return snapshot_of(shape, PlatformWorkspace(desk.workspace_id, "Main", "testnet"))
