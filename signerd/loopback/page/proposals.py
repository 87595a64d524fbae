"""The page of one proposal: the API's view, in the order in which a person decides; with the diagram of what
its transaction spends and pays, as this machine parsed it.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from custody.common.pages.flow import Flow, Picture, address_lines, draw
from custody.common.pages.rendering import Live, Stage, stages
from custody.common.text import count
from signerd.api.proposals import ProposalsApi
from signerd.core.states import ASKED, DECLINABLE, DELIVERED, ON_THE_WAY, UNDECIDED, State
from signerd.core.text import place_words
from signerd.errors import DeviceError, IllegalEvent, StaleApproval
from signerd.loopback.page import rendering
from signerd.loopback.page.rendering import PageRequest, PageRoute, page, part
from signerd.shapes import ChangeView, Happened, MoneyView, PaymentView, ProposalLine, ProposalView
from signerd.standing import device_words, is_proof, own_words

AT_THE_DEVICE = frozenset({"waiting-for-device", "exported", "signing"})
# The steps from the decision to the confirmation, each with its states.
STEPS = (
    ("Your decision", frozenset({"received", "waiting-for-person", "interrupted"})),
    ("Your device signs", AT_THE_DEVICE),
    ("The platform takes the signature", frozenset({"signed", "submitting", "kept"})),
    ("Others sign, and it is sent", frozenset({"submitted"})),
    ("In a block", frozenset({"broadcast"})),
    ("Confirmed", frozenset({"confirmed"})),
)

PROOF_STEPS = (
    *STEPS[:3],
    ("Others sign", frozenset({"submitted", "broadcast"})),
    ("The proof is complete", frozenset({"confirmed"})),
)

# A program collects its imported PSBT itself; the platform does not know it.
IMPORTED_STEPS = (
    *STEPS[:2],
    ("Signed, and ready for the program that imported it", frozenset({"signed", "handed-over"})),
)


@dataclass(frozen=True)
class DiagramRow:
    """A row of the table beside the diagram. ``per_mille``: its share of the inputs, for its bar. ``to``: the
    output, where it is one.
    """

    kind: str
    title: str
    sats: int | None
    per_mille: int
    to: PaymentView | ChangeView | None = None
    note: str = ""


def _shown(view: ProposalView) -> dict[str, Any]:
    """The review for its template. ``decidable``: the person is asked and may approve."""
    whose = "your own profile" if view.from_profile else "the vault"
    checks, money = view.checks, None if is_proof(view) else view.money
    rows = () if money is None else shares(money, whose)
    undecided = view.state in ASKED
    decidable = undecided and view.allowed
    return {
        "view": view,
        "whose": whose,
        "picture": None if money is None else picture_of(money, rows),
        "shares": rows,
        "refused": [c for c in checks if c.outcome == "refuse"],
        "to_acknowledge": [c for c in checks if decidable and c.acknowledge],
        "warned": [c for c in checks if c.outcome == "warn" and not (decidable and c.acknowledge)],
        "passed": [c for c in checks if c.outcome == "allow"],
        "asked": undecided,
        "decidable": decidable,
        "declinable": view.state in DECLINABLE,
    }


def shares(money: MoneyView, whose: str) -> tuple[DiagramRow, ...]:
    fee = money.fee_sats or 0
    full = max(money.total_in_sats or 0, money.paid_sats + money.change_sats + max(fee, 0), 1)

    def part(sats: int) -> int:
        return max(sats, 0) * 1_000 // full

    rate = "the amount of a coin is not proven" if money.fee_rate is None else f"{money.fee_rate} sat/vB"
    rows = [
        DiagramRow("pay", "Pays", p.amount_sats, part(p.amount_sats), p, p.pinned or "")
        for p in money.payments
    ]
    for c in money.change:
        note = f"derived again here, {place_words(c.chain, c.index)}"
        rows.append(DiagramRow("back", f"Back to {whose}", c.amount_sats, part(c.amount_sats), c, note))
    return (*rows, DiagramRow("fee", "Network fee", money.fee_sats, part(fee), note=rate))


def stages_of(view: ProposalLine) -> tuple[Stage, ...]:
    """Empty for a state outside these steps. None is done that this machine did not do."""
    steps: Sequence[tuple[str, frozenset[str]]] = PROOF_STEPS if is_proof(view) else STEPS
    if view.imported_by is not None:
        steps = IMPORTED_STEPS
    elif own_words(view) and not view.signed_here:
        steps = steps[3:]
    return stages(steps, view.state, is_over=view.state in {"confirmed", "handed-over"})


def status_line(view: ProposalLine, lines: Sequence[Happened]) -> str:
    """The sentence below the state: the device's progress, or else the reason for the state.

    ``lines``: the feed's lines about the proposal, oldest first. Those of an earlier state are skipped.
    """
    if view.state == "signing":
        after = max((n for n, line in enumerate(lines, 1) if line.kind == "state"), default=0)
        progress = [line.text for line in lines[after:] if line.kind == "progress"]
        if progress:
            return progress[-1]
    return "" if view.reason == view.alarm else view.reason


def _parts(request: PageRequest, view: ProposalView, *, changed: bool = False) -> dict[str, Any]:
    """The context of both parts of the page."""
    lines = request.service.feed.since(0, view.psbt_id)
    # With the digest of what it shows, so that the next refresh detects a change (S24).
    path = f"/proposals/{view.psbt_id}/review?shown={view.digest}{'&changed=1' if changed else ''}"
    return {
        "title": view.title,
        "shown": _shown(view),
        "stages": stages_of(view),
        "status_line": status_line(view, lines),
        "changed": changed,
        "standing_part": Live("standing", "proposals/standing.html", f"/proposals/{view.psbt_id}/standing"),
        "review_part": Live("review", "proposals/review.html", path),
    }


async def _proposal(request: PageRequest) -> dict[str, Any]:
    view, needs = await request.call(ProposalsApi.proposal), ""
    if view.state == State.WAITING_DEVICE:
        with suppress(DeviceError):
            there = await request.service.devices()
            needs = device_words(there, (await request.service.status()).fingerprint)
    return {**_parts(request, view), "device_words": needs}


async def _reviewed(request: PageRequest) -> dict[str, Any]:
    view = await request.call(ProposalsApi.proposal)
    changed = request.query("changed") == "1" or request.query("shown") != view.digest
    # Once it is decided no yes is at stake, and the platform's word of one's own decline changes it, too.
    return _parts(request, view, changed=changed and view.state in UNDECIDED)


async def approve(request: PageRequest) -> Response:
    """Bound to the digest that the page showed. Sent twice, it approves once."""
    try:
        await request.call(ProposalsApi.approve)
    except StaleApproval:
        return _changed(request, await request.call(ProposalsApi.proposal))
    except IllegalEvent:
        view, said = await request.call(ProposalsApi.proposal), await request.fields()
        if view.digest != said.one("digest") or view.state not in ON_THE_WAY | DELIVERED:
            raise
    return await _decided(request)


async def decline(request: PageRequest) -> Response:
    try:
        await request.call(ProposalsApi.decline)
    except IllegalEvent:
        if (await request.call(ProposalsApi.proposal)).state != "declined":
            raise
    return await _decided(request)


async def _decided(request: PageRequest) -> Response:
    made = await _proposal(request)
    return request.part(made["review_part"], made["standing_part"], **made)


def _changed(request: PageRequest, view: ProposalView) -> Response:
    """The review as it is now replaces the one that was shown; nothing was approved."""
    context = _parts(request, view, changed=True)
    html, _mark = rendering.live_part(context["review_part"], context)
    headers = {"HX-Retarget": "#review", "HX-Reswap": "outerHTML"}
    return rendering.answer(html, HTTPStatus.CONFLICT, headers)


ROWS = (
    page("/proposals/{psbt_id}", "proposals/proposal.html", None, _proposal, here="/"),
    part("/proposals/{psbt_id}/standing", _proposal, "standing_part"),
    part("/proposals/{psbt_id}/review", _reviewed, "review_part"),
    PageRoute("POST", "/proposals/{psbt_id}/approve", approve),
    PageRoute("POST", "/proposals/{psbt_id}/decline", decline),
)


def picture_of(money: MoneyView, rows: Sequence[DiagramRow]) -> Picture | None:
    """None where an amount is not known. ``rows``: of its ``shares``; the last one is the fee."""
    if money.fee_sats is None:
        return None
    coins = [Flow("coin", coin.amount_sats or 0, f"Coin {n}") for n, coin in enumerate(money.coins, start=1)]
    *paid, fee = (Flow(row.kind, row.sats or 0, row.title, _lines(row)) for row in rows)
    data = (Flow("data", 0, f"Data, {count(len(d.data) // 2, 'byte', 'bytes')}") for d in money.data)
    return draw(coins, (*paid, *data, fee))


def _lines(row: DiagramRow) -> tuple[tuple[str, ...], ...]:
    """What stands below its title."""
    if row.to is None:
        return ()
    if isinstance(row.to, ChangeView):
        return ((place_words(row.to.chain, row.to.index),), *address_lines(row.to.on_screen))
    return address_lines(row.to.on_screen, bytes.fromhex(row.to.script))
