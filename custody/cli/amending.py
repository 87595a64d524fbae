"""``custody proposal bump``, ``accelerate`` and ``cancel``: change or end a payment that is under way."""

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import click

from custody.cli.common import confirm, json_option, yes_option
from custody.cli.desk import Desk, pass_desk
from custody.cli.meant import place_of, workspace_option
from custody.cli.payments import tell_proposed
from custody.cli.proposals import lines_of, proposal_of, title_of
from custody.terminal import answer, aside, say
from custody.text import amount

if TYPE_CHECKING:
    from custody.schemas.proposals import Proposal

_given = click.argument("given", metavar="PROPOSAL", help="Its id, or the beginning of it.")
_fee_rate = click.option("--fee-rate", help="In sat/vB; else as the platform chooses.")


@click.group("proposal")
def proposal() -> None:
    """Bump, accelerate or cancel a payment that is under way."""


@proposal.command("bump")
@pass_desk
@_given
@_fee_rate
@workspace_option
@yes_option
@json_option
def bump_command(
    desk: Desk, given: str, fee_rate: str | None, workspace: str | None, yes: bool, as_json: bool
) -> None:
    """Propose the same payment at a higher fee: it replaces the earlier one once it is approved."""
    ask = {"what": "replaces_psbt_id", "question": "Propose it at this fee?"}
    _propose(desk, given, fee_rate, workspace, yes=yes, as_json=as_json, **ask)


@proposal.command("accelerate")
@pass_desk
@_given
@_fee_rate
@workspace_option
@yes_option
@json_option
def accelerate_command(
    desk: Desk, given: str, fee_rate: str | None, workspace: str | None, yes: bool, as_json: bool
) -> None:
    """Propose a child that pays for a transaction which waits to be mined."""
    ask = {"what": "accelerates_psbt_id", "question": "Propose a child with this fee?"}
    _propose(desk, given, fee_rate, workspace, yes=yes, as_json=as_json, **ask)


def _propose(
    desk: Desk,
    given: str,
    fee_rate: str | None,
    workspace: str | None,
    *,
    what: str,
    question: str,
    yes: bool,
    as_json: bool,
) -> None:
    from custody.schemas.proposals import CreatePsbtRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        one = proposal_of(client, place.workspace_id, given)
        asked: dict[str, Any] = {"tx_type": "send", "workspace_id": place.workspace_id, what: one.psbt_id}
        asked |= {"wallet_id": one.vault_id, "fee_rate": fee_rate}
        request = CreatePsbtRequest.model_validate(asked)
        found = client.preview_psbt(request)
        _show(one)
        aside(f"  The new one's fee: {amount(found.fee_sats)}, {found.fee_rate} sat/vB")
        confirm(desk.answers, question, yes=yes)
        made = client.proposal(client.create_psbt(request, idempotency_key=uuid4().hex).psbt_id)
    if as_json:
        answer(made)
    else:
        tell_proposed(made)


@proposal.command("cancel")
@pass_desk
@_given
@click.option("--reason", help="Why, for those who look at it later.")
@workspace_option
@yes_option
@json_option
def cancel_command(
    desk: Desk, given: str, reason: str | None, workspace: str | None, yes: bool, as_json: bool
) -> None:
    """Cancel a proposal that waits for signatures. Signatures already given stay valid, and it says so."""
    from custody.schemas.proposals import CancelPsbtRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        one = proposal_of(client, place.workspace_id, given)
        _show(one)
        confirm(desk.answers, "Cancel it?", yes=yes)
        done = client.cancel_psbt(
            CancelPsbtRequest(psbt_id=one.psbt_id, workspace_id=place.workspace_id, reason=reason)
        )
    if as_json:
        answer(done)
    else:
        say(f"Cancelled: {title_of(one)}, proposal {done.psbt_id}. {done.detail}")


def _show(one: "Proposal") -> None:
    for line in lines_of(one):
        aside(line)
