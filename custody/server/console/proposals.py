"""The workspace's proposals; one of them: where its money goes, who approved, what it waits for; and what can
still be done with it: a higher fee, its coins taken back, its end. And proofs of control: those of a
workspace, asking a vault's signers for one, and its file.
"""

from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from custody.common.pages.rendering import stages
from custody.common.pages.serving import attachment
from custody.common.text import btc
from custody.schemas import proposals as wire
from custody.schemas.proofs import CREATE_PROOF, MAX_MESSAGE, PROOF
from custody.schemas.users import MEMBERS
from custody.server.console.context import PageContext
from custody.server.console.limits import left_of
from custody.server.console.money import MoneyReview, inspected, money_of
from custody.server.console.rendering import member_words
from custody.server.console.reviews import Facts, Review, require_as_shown, shown_mark
from custody.server.console.table import Row, form, live, template_view
from custody.server.console.typed import fee_rate, require_days_in_order
from custody.server.console.vaults import vault_by_id, vaults_to_choose
from custody.server.errors import Invalid, NotInAddressBook
from custody.server.proposals.bounds import require_listed
from custody.server.rules.lifecycle import KEEPING
from custody.server.store.models import ProposalRow, VaultRow
from multisig import Psbt
from multisig.bip322 import inspect_proof

FILTERS: Final = ("search", "status", "created_by", "awaiting", "vault", "from_day", "to_day")
# What a person needs who proposes.
PROPOSER = "MANAGE_WORKSPACE"
_BEFORE_THE_NETWORK = frozenset(
    {wire.ProposalStatus.PENDING, wire.ProposalStatus.SIGNED, wire.ProposalStatus.STALLED}
)
_STEPS: Final[Sequence[tuple[str, Collection[str]]]] = (
    ("Proposed", frozenset[str]()),
    ("Signers approve", frozenset({wire.ProposalStatus.PENDING})),
    ("Signed, and sent", frozenset({wire.ProposalStatus.SIGNED, wire.ProposalStatus.STALLED})),
    ("Waits for a block", frozenset({wire.ProposalStatus.BROADCASTING})),
    ("Confirmed", frozenset({wire.ProposalStatus.CONFIRMED})),
)
_STEPS_OF_PROOF: Final[Sequence[tuple[str, Collection[str]]]] = (
    ("Asked for", frozenset[str]()),
    ("Signers approve", frozenset({wire.ProposalStatus.PENDING})),
    ("Complete", frozenset({wire.ProposalStatus.PROVEN})),
)


# --- the list -----------------------------------------------------------------------------------------------


def _listed(page: PageContext) -> dict[str, Any] | None:
    wanted: dict[str, Any] = {name: page.query(name).strip() or None for name in FILTERS}
    is_filtered, vault_id, awaiting = any(wanted.values()), wanted.pop("vault"), wanted.pop("awaiting")
    own: dict[str, Any] = {"vault_id": vault_id, "awaiting": awaiting and "me", "order": "newest"}
    try:
        require_days_in_order(page)
        listed = page.read_page(wire.PSBT, **own, **wanted)
    except Invalid as error:
        page.problem = error
        return None
    return {"proposals": listed, "filtered": is_filtered}


# --- one ----------------------------------------------------------------------------------------------------


def proposal_of(page: PageContext) -> wire.Proposal:
    """Raises NotFound for one of another workspace."""
    proposal: wire.Proposal = page.read(wire.PSBT, psbt_id=page.path_param("psbt_id"))
    return proposal


def members_by_id(page: PageContext) -> dict[str, str]:
    """For a filter by person; empty for a person who may not see them."""
    members = page.read(MEMBERS) if page.workspace.may(*MEMBERS.permissions) else []
    return {str(member.uuid): member_words(member) for member in members}


def _money(page: PageContext) -> dict[str, Any]:
    proposal = proposal_of(page)
    vault, psbt = vault_by_id(page, proposal.vault_id), proposal.psbt_base64
    if proposal.tx_type is wire.TxType.PROOF:
        return {"section": "proofs", "seen": inspected(inspect_proof, psbt, vault)}
    return {"section": "proposals", "money": money_of(page, psbt, vault, proposal.tx_type)}


def _not_listed(page: PageContext, proposal: wire.Proposal) -> str:
    """Why nobody can approve it, where the vault was bound to the address book since; else empty."""
    with page.reading() as ctx:
        vault = ctx.db.get_one(VaultRow, proposal.vault_id)
        try:
            require_listed(ctx.db, vault, b64decode(proposal.psbt_base64))
        except NotInAddressBook as error:
            return error.detail
    return ""


def _is_newer_mined(page: PageContext, proposal: wire.Proposal) -> bool:
    if proposal.replaced_by_psbt_id is None or proposal.status is wire.ProposalStatus.CONFIRMED:
        return False
    with page.reading() as ctx:
        return (
            ctx.db.get_one(ProposalRow, proposal.replaced_by_psbt_id).status == wire.ProposalStatus.CONFIRMED
        )


def _standing(page: PageContext) -> dict[str, Any]:
    proposal = proposal_of(page)
    vault = vault_by_id(page, proposal.vault_id)
    workspace, status = page.workspace, proposal.status
    me, is_forward = str(page.user.uuid), proposal.tx_type is wire.TxType.FORWARD
    may_propose = workspace.may(PROPOSER) and not is_forward
    may_end = proposal.created_by == me or may_propose
    is_pending = status is wire.ProposalStatus.PENDING
    lacks_deposit = proposal.trouble is not None and proposal.trouble.kind is wire.TroubleKind.COIN_MISSING
    # Signatures of it exist: its coins stay locked.
    keeps_coins = status in KEEPING and proposal.may_be_replaced
    can_be_replaced = may_propose and proposal.may_be_replaced
    can_be_bumped = can_be_replaced and not keeps_coins and not lacks_deposit
    signs = [signer for signer in proposal.signers if signer.user_id == me]
    steps = _STEPS_OF_PROOF if proposal.tx_type is wire.TxType.PROOF else _STEPS
    if proposal.screening is not None:
        steps = (steps[0], ("Screening", frozenset({"HELD"})), *steps[1:])
    return {
        "proposal": proposal,
        # None where it is over without its last stage: its state says why.
        "stages": stages(steps, proposal.state),
        "is_frozen": status in _BEFORE_THE_NETWORK and vault.is_frozen,
        "not_listed": _not_listed(page, proposal) if is_pending and not is_forward else "",
        "is_newer_mined": _is_newer_mined(page, proposal),
        "actions": [
            (words, path)
            for words, path, may in (
                ("Pay a higher fee", "bump", can_be_bumped),
                ("Take its coins back", "take-back", can_be_replaced and not is_pending),
                ("Free its coins", "release", may_end and keeps_coins),
                ("Cancel", "cancel", may_end and (is_pending or lacks_deposit)),
            )
            if may
        ],
        "decides": proposal.state == "PENDING" and any(signer.decision is None for signer in signs),
    }


# --- after it was proposed ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReplacementForm:
    """``names``: the field of `create-psbt` that names the proposal."""

    title: str
    words: str
    action: str
    done: str
    names: str


CHANGES: Final[Mapping[str, ReplacementForm]] = {
    "bump": ReplacementForm(
        "Pay a higher fee",
        "The same payment is proposed again at a higher fee, out of its change; without change, out of its "
        "amount where it sends everything. Its signers approve the new version. At most one of all versions "
        "is mined.",
        "Propose the new version",
        "The new version is proposed. Its signers decide now.",
        "replaces_psbt_id",
    ),
    "take-back": ReplacementForm(
        "Take its coins back",
        "A new version spends the same coins and pays everything back to the vault. Once that is mined, the "
        "payment can never be. Its signers approve it.",
        "Propose to take it back",
        "Taking it back is proposed. Its signers decide now.",
        "cancels_psbt_id",
    ),
}


def _change(page: PageContext) -> ReplacementForm:
    return CHANGES[page.request.url.path.rpartition("/")[2]]


def _request(page: PageContext, proposal: wire.Proposal) -> dict[str, Any]:
    """Without its rate."""
    ids = {"wallet_id": proposal.vault_id, "tx_type": "send"}
    return {**ids, _change(page).names: proposal.psbt_id}


def change_page(page: PageContext) -> Response:
    """What it pays now, and what the fastest rate would cost."""
    proposal, change = proposal_of(page), _change(page)
    request = {**_request(page, proposal), "priority": "high"}
    offered, why_not = page.tried(lambda: page.read(wire.PREVIEW_PSBT, **request))
    return page.render(
        "proposals/change.html",
        proposal=proposal,
        change=change,
        offered=offered,
        why_not=why_not,
    )


def review_change(page: PageContext) -> Review:
    proposal, change = proposal_of(page), _change(page)
    shown = page.read(wire.PREVIEW_PSBT, **_request(page, proposal), fee_rate=fee_rate(page))
    vault = vault_by_id(page, proposal.vault_id)
    return MoneyReview(
        change.title,
        (("Rate", f"{proposal.fee_rate} sat/vB before, {shown.fee_rate} sat/vB now"),),
        change.action,
        money=money_of(page, shown.psbt_base64, vault),
        taken_from=vault.name,
        amounts=(
            ("Fee before", proposal.fee_sats),
            ("Fee of this one", shown.fee_sats),
            ("Leaves the vault, fee included", shown.movement_sats),
        ),
        left=left_of(page, shown, vault),
        pinned=(shown_mark(*coins_and_payments(shown.psbt_base64)),),
    )


def coins_and_payments(psbt_base64: str) -> list[Any]:
    """Its coins and what it pays. Not the lock time, which each block changes, nor the change's address."""
    psbt = Psbt.parse(psbt_base64)
    pays = [(b"" if each.derivations else each.script_pubkey, int(each.amount)) for each in psbt.outputs]
    return [sorted(str(each.outpoint) for each in psbt.inputs), sorted(pays)]


def propose_change(page: PageContext) -> Response:
    made = page.act(
        wire.CREATE_PSBT,
        check=lambda made: require_as_shown(page, *coins_and_payments(made.psbt_base64)),
        **_request(page, proposal_of(page)),
        fee_rate=fee_rate(page),
    )
    return page.redirect(f"{page.workspace.path}/proposals/{made.psbt_id}", _change(page).done)


release_page = template_view("proposals/release.html", proposal=proposal_of)


def _what_it_pays(page: PageContext) -> Facts:
    proposal = proposal_of(page)
    each = map("{} BTC to {}".format, map(btc, proposal.amounts_sats), proposal.recipients)
    pays = ("; ".join(each) if proposal.pays_others else "") or "nobody"
    facts = [("Description", proposal.description or "none"), ("It would pay", pays)]
    if before := proposal.replaces_psbt_id:
        facts.append(("Earlier version", f"{before}: can be signed and sent again, unless it has ended"))
    return facts


def _signatures_are_out(page: PageContext) -> str:
    proposal = proposal_of(page)
    out = sum(signer.decision == "approve" for signer in proposal.signers)
    ends = "No further signature is accepted."
    if not out:
        return ends
    return (
        f"{ends} {out} of {proposal.required_signatures} signatures are out and stay valid: a person who "
        "holds enough of them can still send it. Its coins stay locked: take them back afterwards, or free "
        "them."
    )


cancel_page = template_view(
    "proposals/cancel.html", proposal=proposal_of, facts=_what_it_pays, warning=_signatures_are_out
)


def _after_ending(ended: wire.CancelPsbtResponse) -> str:
    if ended.coins_kept:
        return "It is cancelled. Signatures of it are out: take its coins back, or free them."
    return f"It is cancelled. {ended.detail}"


# --- proofs of control (BIP-322) ----------------------------------------------------------------------------


proofs = template_view(
    "proofs/list.html", proofs=lambda page: page.read_page(wire.PSBT, tx_type="proof", order="newest")
)


def proof_form(page: PageContext) -> Response:
    page.workspace.require(PROPOSER)
    vaults = [(each.id, each.marked_name) for each in vaults_to_choose(page, "vault_id")]
    return page.render("proofs/new.html", vaults=vaults, longest=MAX_MESSAGE)


def proof_file(page: PageContext) -> Response:
    psbt_id = page.path_param("psbt_id")
    proof = page.read(PROOF, psbt_id=psbt_id)
    headers = attachment(f"proof-{psbt_id[:8]}.json")
    return Response(proof.model_dump_json(indent=2) + "\n", headers=headers, media_type="application/json")


_HERE = "/w/{workspace_id:int}"
_ONE = f"{_HERE}/proposals/{{psbt_id}}"
_PROOFS = f"{_HERE}/proofs"
ROWS = (
    *live(
        f"{_HERE}/proposals", f"{_HERE}/parts/proposals", ("proposals/list.html", "proposals/listed.html"),
        _listed, around=lambda page: {"members": members_by_id(page)},
    ),
    *live(
        _ONE, f"{_HERE}/parts/proposals/{{psbt_id}}", ("proposals/proposal.html", "proposals/standing.html"),
        _standing, around=_money,
    ),
    *(
        Row(
            "POST", f"{_ONE}/{kind}", propose_change, again=change_page, review=review_change,
            has_page=True, acts=(wire.CREATE_PSBT,),
        )
        for kind in CHANGES
    ),
    form(
        f"{_ONE}/cancel", wire.CANCEL_PSBT, cancel_page, _after_ending, optional=("reason",), has_page=True,
    ),
    form(
        f"{_ONE}/release", wire.CANCEL_PSBT, release_page, _after_ending,
        given=lambda _page: {"release_coins": True}, has_page=True,
    ),
    Row("GET", _PROOFS, proofs),
    form(
        _PROOFS + "/new", CREATE_PROOF, proof_form, "Its signers are asked.", to="proposals/{0.psbt_id}",
        asks="Ask the signers", optional=("address",),
        warns="Height and hash of the last block are added to the message. It moves nothing. Every reader of "
        "its file learns what it says.", has_page=True,
    ),
    Row("GET", _PROOFS + "/{psbt_id}/file", proof_file),
)  # fmt: skip
