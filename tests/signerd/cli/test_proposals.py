"""proposals, show, approve, decline; inspect and sign for a PSBT from a file: against a real daemon over a
scripted platform and a device that obeys (docs/sign/payments.md, docs/sign/imported.md,
docs/operate/issuing-a-token.md).
"""

import asyncio
from dataclasses import replace

import pytest

from custody.common.terminal import Exit
from custody.common.text import amount
from custody.schemas.proposals import ProposalStatus
from firmware_bridge import RefusedByPerson
from multisig import Psbt, ReceivedPsbt, signer_progress, to_version_2
from signerd.callers import LoopbackCaller
from signerd.cli import progress
from signerd.core.states import State
from signerd.shapes import ProposalView
from tests.support.bills import bill
from tests.support.command import is_tame, signerd
from tests.support.desk import VAULT, snapshot_of, spend
from tests.support.wallets import ALICE

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\r\nChecks\n  ok  everything\x9b31m"


def await_proposal(daemon, psbt_id: str) -> None:
    daemon.until(lambda: any(r.psbt_id == psbt_id for r in daemon.service.journal.records()))


def shown(state, psbt_id: str = "p-1") -> ProposalView:
    return ProposalView.model_validate(signerd("show", psbt_id, "--json", state=state).json)


# --- proposals ----------------------------------------------------------------------------------------------


def test_the_list_shows_titles_and_the_network_and_what_the_platform_says_and_on_request_what_has_ended(
    desk, outer
):
    ended = signerd("proposals", state=desk.state)
    view = shown(desk.state)
    assert ended.status == Exit.OK
    assert "waits for your decision" in ended.out
    assert ended.out.startswith("REGTEST: test coins, no real bitcoin\n\np-1  Pay 0.0005 BTC to tb1q")
    assert f"fee {amount(view.fee_sats or 0)}\n" in ended.out
    assert 'the platform says: by user 2 on 2026-01-02 03:04:05 UTC, "Invoice 7"' in ended.out
    [line] = signerd("proposals", "--json", state=desk.state).json
    assert (line["psbt_id"], line["network"], line["state"]) == ("p-1", "regtest", "waiting-for-person")
    assert signerd("decline", "p-1", "--yes", "--json", state=desk.state).json["state"] == "declined"
    # The others may still sign it.
    assert "     declined.\n" in signerd("proposals", state=desk.state).out
    sent = outer.platform.proposals["p-1"]
    outer.platform.proposals["p-1"] = replace(sent, status=ProposalStatus.REJECTED)
    desk.until(lambda: desk.service.journal.record("p-1").state is State.WITHDRAWN)
    assert signerd("proposals", "--json", state=desk.state).json == []
    assert "No proposal" in signerd("proposals", state=desk.state).out
    assert "     rejected" in signerd("proposals", "--all", state=desk.state).out
    [line] = signerd("proposals", "--all", "--json", state=desk.state).json
    assert line["state"] == "withdrawn"


# --- show ---------------------------------------------------------------------------------------------------


def test_show_says_where_the_money_goes_and_each_check_in_a_sentence(desk):
    view, text = shown(desk.state), signerd("show", "p-1", "-v", state=desk.state).out
    money = view.money
    assert money is not None
    for payment in money.payments:
        assert payment.on_screen.startswith("tb1q")
        assert f"pays   {amount(payment.amount_sats)} to {payment.on_screen}\n" in text
        assert f"         {payment.address} elsewhere: most devices write regtest's addresses" in text
    for change in money.change:
        where = f"{change.on_screen} ({'change' if change.chain else 'receive'} address {change.index})"
        assert f"back   {amount(change.amount_sats)} to the vault, {where}" in text
    assert f"fee    {amount(money.fee_sats)}, {money.fee_rate} sat/vB" in text
    assert f"takes  {amount(money.total_in_sats)}" in text
    assert all(check.sentence in text for check in view.checks)
    assert "REGTEST: test coins" in text
    assert VAULT.verification_code in text
    assert "(not believed)" in text


def test_l8_what_the_platform_writes_cannot_touch_the_terminal(desk, outer):
    outer.platform.proposals["p-2"] = snapshot_of(bill(1), "p-2", description=HOSTILE, created_by=HOSTILE)
    await_proposal(desk, "p-2")
    for command in (["proposals"], ["show", "p-2"], ["show", "p-2", "--json"], ["status"]):
        ended = signerd(*command, state=desk.state)
        assert is_tame(ended.out), command
        assert ended.status == Exit.OK
    lines = signerd("show", "p-2", state=desk.state).out.splitlines()
    # Its line breaks are gone too: the words stay where they are marked as the platform's.
    assert [line for line in lines if line.strip() == "Checks"] == ["Checks"]


# --- approve ------------------------------------------------------------------------------------------------


def test_approve_shows_asks_and_follows_the_device_to_the_platform(desk, outer):
    ended = signerd("approve", "p-1", state=desk.state, typed="y\n")
    assert signerd("show", "p-1", state=desk.state).out.splitlines()[0] in ended.out
    assert "Where the money goes" in ended.out
    assert "Confirm the transaction." in ended.out
    assert "the platform has your signature" in ended.out
    assert len(outer.platform.signatures("p-1")) == 1
    assert outer.bridge.asked == 1


def test_anything_but_yes_approves_nothing(desk, outer):
    for typed in ("n\n", "\n", "maybe\n", "Y E S\n"):
        ended = signerd("approve", "p-1", state=desk.state, typed=typed, ends=Exit.DECLINED)
        assert "Nothing was approved" in ended.out
    signerd("approve", "p-1", state=desk.state, ends=Exit.USAGE)  # nobody is there
    assert shown(desk.state).state == "waiting-for-person"
    assert outer.bridge.asked == 0


def test_s24_the_yes_is_to_what_was_shown_and_to_nothing_else(desk, outer):
    """The proposal changes while the person reads."""
    real, before = desk.service.proposal, [{"digest": "00" * 32}]

    async def as_it_was(psbt_id: str, by: LoopbackCaller) -> ProposalView:
        return (await real(psbt_id, by)).model_copy(update=before.pop() if before else {})

    desk.service.proposal = as_it_was
    ended = signerd("approve", "p-1", "--yes", state=desk.state, ends=Exit.NOT_DECIDED)
    assert "not what the proposal shows now" in ended.err
    assert outer.bridge.asked == 0


def test_s25_a_warning_that_holds_must_be_named(desk, outer):
    """The same payment from other coins, twice more."""
    outer.platform.proposals = {f"b-{n}": snapshot_of(bill(n), f"b-{n}") for n in (1, 2, 3)}
    for psbt_id in outer.platform.proposals:
        await_proposal(desk, psbt_id)
    signerd("approve", "b-1", "--yes", state=desk.state)
    [name] = shown(desk.state, "b-2").to_acknowledge
    assert f"held until you name these warnings: {name}" in signerd("show", "b-2", state=desk.state).out
    assert name in signerd("approve", "b-2", "--yes", state=desk.state, ends=Exit.NOT_DECIDED).err
    signerd("approve", "b-2", state=desk.state, typed="yes\ny\n", ends=Exit.NOT_DECIDED)
    unknown = signerd(
        "approve",
        "b-2",
        "--acknowledge",
        f"{name}x",
        "--acknowledge",
        name,
        "--yes",
        state=desk.state,
        ends=Exit.USAGE,
    )
    assert f"no check of this proposal has the name {name}x" in unknown.err
    assert outer.bridge.asked == 1
    signerd("approve", "b-2", state=desk.state, typed=f"{name}\ny\n")
    assert outer.bridge.asked == 2
    signerd("approve", "b-3", "--acknowledge", "paid-twice", "--yes", state=desk.state)


def hold(outer) -> None:
    outer.bridge.gate = asyncio.Event()


def test_ctrl_c_while_the_device_waits_leaves_the_approval_which_is_followed_without_asking_again(
    desk, outer, monkeypatch
):
    desk.on_loop(hold, outer)
    following = progress.until_decided

    def interrupt(*_args: object) -> None:
        raise KeyboardInterrupt

    def pressed(*args):
        desk.on_loop(outer.bridge.gate.set)
        return following(*args)

    monkeypatch.setattr("signerd.cli.proposals.until_decided", interrupt)
    ended = signerd("approve", "p-1", "--yes", state=desk.state, ends=Exit.INTERRUPTED)
    assert "Your approval stands" in ended.err
    desk.until(lambda: outer.bridge.asked == 1)
    declined = signerd("decline", "p-1", state=desk.state, ends=Exit.NOT_DECIDED)
    assert ("Say no on the device." in declined.err, declined.out) == (True, ""), "it asks nothing first"
    monkeypatch.setattr("signerd.cli.proposals.until_decided", pressed)
    assert "the platform has your signature" in signerd("approve", "p-1", state=desk.state).out
    assert outer.bridge.asked == len(outer.platform.signatures("p-1")) == 1
    late = signerd("decline", "p-1", state=desk.state, ends=Exit.NOT_DECIDED)
    assert ("can no longer be declined: the platform has your signature" in late.err, late.out) == (True, "")


# --- decline ------------------------------------------------------------------------------------------------


def test_l17_decline_asks_and_tells_the_platform_why(desk, outer):
    ended = signerd("decline", "p-1", state=desk.state, typed="n\n", ends=Exit.DECLINED)
    assert ended.out.endswith("Nothing was declined.\n")
    assert "A decline cannot be taken back, and may not stop it" in ended.out
    assert shown(desk.state).state == "waiting-for-person"
    ended = signerd("decline", "p-1", "--reason", "who is this for?", state=desk.state, typed="y\n")
    assert ended.out.endswith("Proposal p-1: declined: “who is this for?”.\n")
    desk.until(lambda: bool(outer.platform.told()))
    assert [(t["decision"], t["reason"]) for t in outer.platform.told()] == [("reject", "who is this for?")]
    for command, said in (("decline", "it is declined already"), ("approve", "cannot be approved: declined")):
        again = signerd(command, "p-1", state=desk.state, ends=Exit.NOT_DECIDED)
        assert (said in again.err, "2 other signers are enough" in again.err) == (True, True)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "bill.psbt"
    path.write_bytes(bill().to_bytes())
    return path


def written(path, psbt: Psbt):
    path.write_text(psbt.to_base64())
    return str(path)


def test_inspect_shows_where_the_money_goes_and_stores_nothing(desk, file):
    ended = signerd("inspect", str(file), state=desk.state)
    assert "0.00050000 BTC (50,000 sats)" in ended.out
    assert "REGTEST" in ended.out
    assert "There is no record of whom it should pay" in ended.out
    [only] = signerd("proposals", "--json", state=desk.state).json
    assert only["psbt_id"] == "p-1"


@pytest.mark.parametrize("version", [0, 2])
def test_sign_shows_asks_and_writes_the_signed_psbt_in_the_version_that_came(
    desk, outer, file, tmp_path, version
):
    """Bitcoin Core writes version 2 from release 32 on."""
    out = tmp_path / "signed"
    if version:
        file.write_bytes(to_version_2(bill()))
    signerd("sign", str(file), state=desk.state, typed="n\n", ends=Exit.DECLINED)
    assert outer.bridge.asked == 0
    # It waits, and is in the list as what it is.
    assert "imported by command line" in signerd("proposals", state=desk.state).out
    ended = signerd("sign", str(file), "-o", str(out), state=desk.state, typed="y\n")
    assert "imported by command line" in ended.err
    signed = ReceivedPsbt.parse(out.read_text().strip())
    assert signed.version == version
    assert signer_progress(signed.psbt, VAULT, ALICE.fingerprint).is_complete
    assert outer.bridge.asked == 1
    # Asked again: the same bytes, and the device is left alone.
    again = signerd("sign", str(file), state=desk.state)
    assert again.out == out.read_text()
    other = signerd("sign", str(file), "--psbt-version", str(2 - version), state=desk.state)
    received = ReceivedPsbt.parse(other.out.strip())
    assert (received.version, received.psbt) == (2 - version, signed.psbt)
    assert outer.bridge.asked == 1
    # What is there is not overwritten.
    signerd("sign", str(file), "-o", str(out), state=desk.state, ends=Exit.USAGE)


def test_sign_asks_no_device_where_it_cannot_write_or_sign(desk, outer, file, tmp_path):
    signerd(
        "sign", str(file), "--yes", "-o", str(tmp_path / "none" / "signed"), state=desk.state, ends=Exit.USAGE
    )
    of_the_platforms = signerd(
        "sign", written(tmp_path / "x", spend()), "--yes", state=desk.state, ends=Exit.NOT_DECIDED
    )
    assert "p-1" in of_the_platforms.err
    assert outer.bridge.asked == 0
    outer.bridge.failures.append(RefusedByPerson("no"))
    signerd("sign", str(file), "--yes", state=desk.state, ends=Exit.NOT_SIGNED)


def test_what_is_signed_and_cannot_be_written_is_written_the_next_time(desk, outer, file, tmp_path):
    # A name that no file can have: found out at the device's answer only.
    ended = signerd(
        "sign", str(file), "--yes", "-o", str(tmp_path / ("n" * 300)), state=desk.state, ends=Exit.STATE
    )
    assert "It is signed" in ended.err
    signerd("sign", str(file), "-o", str(tmp_path / "signed"), state=desk.state)
    assert outer.bridge.asked == 1
