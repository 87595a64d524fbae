"""What is told of a PSBT that was imported: to the person by whom, to apps nothing of each other's and of the
person's rules.
"""

import time
from dataclasses import replace

from multisig import ChangeTo, build_psbt, sats
from signerd.callers import TERMINAL
from signerd.core.checks.case import hold
from signerd.core.review import review
from signerd.core.states import State
from signerd.core.values import Record
from signerd.daemon.proposal_views import NOT_TOLD, for_an_app, proposal_view
from signerd.loopback.access.sessions import PageSessions
from signerd.loopback.answers import Context
from signerd.loopback.events import Streams
from tests.signerd.daemon.test_imported import OTHER, WALLET, platform, prepared, pytestmark, signed
from tests.support.bills import bill
from tests.support.daemons import until_state
from tests.support.desk import NETWORK, VAULT, judge_again, review_context, snapshot_of, spend
from tests.support.wallets import fund, pay

__all__ = ["platform", "prepared", "pytestmark"]


async def test_l8_an_app_is_told_as_one_whatever_it_calls_itself_and_a_site_by_its_address(daemon) -> None:
    imitator = replace(WALLET, name=TERMINAL.name)
    site = replace(OTHER, name="Shop", origin="https://evil.example")
    told = {
        imitator: "the program 'command line'",
        site: "the site https://evil.example ('Shop')",
        TERMINAL: "command line",
    }
    for number, (caller, name) in enumerate(told.items()):
        view = await daemon.imported.import_psbt(bill(number, 10_000 + number).to_base64(), caller)
        shown = await daemon.proposal(view.psbt_id)
        assert shown.imported_by == name
        assert f"{name} imported it" in shown.checks[0].sentence
        await daemon.imported.withdraw(view.psbt_id, caller)
        reason = (await daemon.proposal(view.psbt_id)).reason
        assert reason == f"{name[0].upper()}{name[1:]} took it back."


async def test_l13_an_app_hears_of_a_refusal_and_not_of_the_persons_rules(daemon) -> None:
    theirs = await daemon.imported.import_psbt(bill(1).to_base64(), WALLET)
    own = await daemon.imported.import_psbt(bill(2, 20_000).to_base64(), TERMINAL)
    # As after a change of the configuration, or when a rule's window has filled.
    daemon.journal.limits = replace(daemon.journal.limits, max_fee=sats(500))
    daemon.runner.announce(judge_again(daemon.journal))
    (told,) = (line.text for line in daemon.feed.since(0, theirs.psbt_id) if line.kind == "attention")
    assert told == "Refused by a check or by your rules: look at it for the reason."
    (told,) = (line.text for line in daemon.feed.since(0, own.psbt_id) if line.kind == "attention")
    assert "500 sats" in told
    assert "500 sats" in (await daemon.proposal(theirs.psbt_id)).reason


async def test_l13_a_proposals_checks_tell_an_app_nothing_of_what_another_one_imported(
    daemon, platform
) -> None:
    same = build_psbt(
        VAULT, [fund(VAULT, 100_000, index=40)], [pay(50_000, "bill"), ChangeTo(sats(49_000), 1, 9)], 0
    )
    theirs = await signed(daemon, bill())
    platform.proposals["p-9"] = snapshot_of(same, "p-9")
    await until_state(daemon, "p-9", State.WAITING_PERSON)
    for caller, told in ((TERMINAL, True), (WALLET, True), (OTHER, False)):
        view = await Context(daemon, Streams(), PageSessions(time.monotonic), caller).proposal("p-9")
        (check,) = (check for check in view.checks if check.name == "paid-twice")
        assert (theirs.psbt_id in check.sentence, theirs.psbt_id in str(check.figures)) == (told, told)
        assert check.acknowledge


def test_l13_nor_does_a_list_that_is_too_long_to_be_shown_whole() -> None:
    names = [f"a{n:x}-{'x' * 61}" for n in range(40)]
    verdict = hold("Long.", proposals=", ".join([*names, "b-theirs"])).under("paid-twice")
    found = replace(review(snapshot_of(spend()), review_context()), verdicts=(verdict,))
    view = proposal_view(Record(found.snapshot, State.WAITING_PERSON, "t"), found, NETWORK)
    assert "b-theirs" not in str(view.checks[0].figures)
    (check,) = for_an_app(view, found, lambda psbt_id: psbt_id == "b-theirs").checks
    assert (check.sentence, check.figures) == (NOT_TOLD, {})
    assert for_an_app(view, found, lambda _psbt_id: False).checks == view.checks
