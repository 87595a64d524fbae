"""The workspace's proposals, and one of them: where its money goes, who approved, what it waits for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from custody.schemas.proposals import PSBT, Proposal, ProposalStatus, TroubleKind, TxType
from custody.server.console.addresses import entries_of
from custody.server.console.context import PageContext
from custody.server.console.money import money_of, proof_of
from custody.server.console.table import live
from custody.server.console.typed import require_days_in_order
from custody.server.console.vaults import vault_by_id
from custody.server.errors import Invalid

PAGE: Final = 50
FILTERS: Final = ("search", "status", "awaiting", "vault", "from_day", "to_day", "after")
# Who may read the address book, and who may propose.
BOOK_READERS = ("PAYMENT_INIT", "MANAGE_WORKSPACE")
PROPOSERS = ("MANAGE_WORKSPACE",)
_BEFORE_THE_NETWORK = frozenset({ProposalStatus.PENDING, ProposalStatus.SIGNED, ProposalStatus.STALLED})
_STEPS: Final = (
    ("Proposed", frozenset[ProposalStatus]()),
    ("Signers approve", frozenset({ProposalStatus.PENDING})),
    ("Signed, and sent", frozenset({ProposalStatus.SIGNED, ProposalStatus.STALLED})),
    ("Waits for a block", frozenset({ProposalStatus.BROADCASTING})),
    ("Confirmed", frozenset({ProposalStatus.CONFIRMED})),
)
_STEPS_OF_PROOF: Final = (
    ("Asked for", frozenset[ProposalStatus]()),
    ("Signers approve", frozenset({ProposalStatus.PENDING})),
    ("Complete", frozenset({ProposalStatus.PROVEN})),
)


@dataclass(frozen=True)
class ProposalStage:
    """``when``: done, now or later."""

    words: str
    when: str


def stages_of(proposal: Proposal) -> tuple[ProposalStage, ...]:
    """Empty for a proposal that is over without its last stage: its state says why."""
    steps = _STEPS_OF_PROOF if proposal.tx_type is TxType.PROOF else _STEPS
    at = next((n for n, (_, statuses) in enumerate(steps) if proposal.status in statuses), None)
    if at is None:
        return ()
    is_over = at == len(steps) - 1
    return tuple(
        ProposalStage(words, "done" if n < at or is_over else "now" if n == at else "later")
        for n, (words, _) in enumerate(steps)
    )


# --- the list -----------------------------------------------------------------------------------------------


def _listed(page: PageContext) -> dict[str, Any] | None:
    try:
        require_days_in_order(page)
        return _page_of(page, _wanted(page))
    except Invalid as error:
        page.problem = error
        return None


def _wanted(page: PageContext) -> dict[str, str]:
    return {name: text for name in FILTERS if (text := page.query(name).strip())}


def _filter(page: PageContext) -> dict[str, Any]:
    return {"wanted": _wanted(page), "statuses": [(status.value, status) for status in ProposalStatus]}


def _page_of(page: PageContext, wanted: Mapping[str, str]) -> dict[str, Any]:
    query: dict[str, Any] = {
        "workspace_id": page.workspace.id,
        "order": "newest",
        "search": wanted.get("search"),
        "status": wanted.get("status"),
        "awaiting": "me" if "awaiting" in wanted else None,
        "vault_id": wanted.get("vault"),
        "from_day": wanted.get("from_day"),
        "to_day": wanted.get("to_day"),
        "after": wanted.get("after"),
    }
    found, after = page.read_page(PSBT, query, limit=PAGE)
    kept = {name: value for name, value in wanted.items() if name != "after"}
    newest = urlencode(kept) if "after" in wanted else None
    following = urlencode({**kept, "after": after}) if after else ""
    return {
        "proposals": found,
        "following": following,
        "newest": newest,
        "filtered": bool(kept),
        "searched": "search" in wanted,
    }


# --- one ----------------------------------------------------------------------------------------------------


def proposal_of(page: PageContext) -> Proposal:
    """Raises NotFound for one of another workspace."""
    found: Proposal = page.read(PSBT, workspace_id=page.workspace.id, psbt_id=page.path_param("psbt_id"))
    return found


def labels_of(page: PageContext, addresses: Sequence[str]) -> dict[str, str]:
    """The address book's names, by address; empty for a person who may not read it."""
    if not addresses or not page.workspace.may(*BOOK_READERS):
        return {}
    return {entry.address: entry.name for entry in entries_of(page, "addresses", addresses)}


def _money(page: PageContext) -> dict[str, Any]:
    proposal = proposal_of(page)
    vault, psbt = vault_by_id(page, proposal.vault_id), proposal.psbt_base64
    if proposal.tx_type is TxType.PROOF:
        return {"section": "proofs", "proof": proof_of(psbt, vault)}
    labels = labels_of(page, proposal.recipients)
    return {"section": "proposals", "money": money_of(psbt, vault, labels, proposal.tx_type)}


def _standing(page: PageContext) -> dict[str, Any]:
    proposal = proposal_of(page)
    vault = vault_by_id(page, proposal.vault_id)
    workspace, status = page.workspace, proposal.status
    me, is_forward = str(page.user.uuid), proposal.tx_type is TxType.FORWARD
    may_propose = workspace.may(*PROPOSERS) and not is_forward
    may_end = proposal.created_by == me or may_propose
    is_pending = status is ProposalStatus.PENDING
    lacks_deposit = proposal.trouble is not None and proposal.trouble.kind is TroubleKind.COIN_MISSING
    # Signatures of it exist: its coins stay locked.
    keeps_coins = status is ProposalStatus.CANCELLED and proposal.may_be_replaced
    can_be_bumped = may_propose and proposal.may_be_replaced and not keeps_coins and not lacks_deposit
    signs = [signer for signer in proposal.signers if signer.user_id == me]
    return {
        "proposal": proposal,
        "stages": stages_of(proposal),
        "is_frozen": status in _BEFORE_THE_NETWORK and vault.is_frozen,
        "actions": [
            (words, path)
            for words, path, may in (
                ("Pay a higher fee", "bump", can_be_bumped),
                (
                    "Take its coins back",
                    "take-back",
                    may_propose and proposal.may_be_replaced and not is_pending,
                ),
                ("Free its coins", "release", may_end and keeps_coins),
                ("Cancel", "cancel", may_end and (is_pending or lacks_deposit)),
            )
            if may
        ],
        "decides": is_pending and any(signer.decision is None for signer in signs),
    }


_HERE = "/w/{workspace_id:int}"
_ONE = "/proposals/{psbt_id}"
ROWS = (
    *live(
        f"{_HERE}/proposals", f"{_HERE}/parts/proposals", ("proposals/list.html", "proposals/listed.html"),
        _listed, around=_filter,
    ),
    *live(
        _HERE + _ONE, f"{_HERE}/parts{_ONE}", ("proposals/proposal.html", "proposals/standing.html"),
        _standing, around=_money,
    ),
)  # fmt: skip
