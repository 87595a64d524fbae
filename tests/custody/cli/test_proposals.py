"""Treasurers' commands for a payment under way and for a member who leaves; what stops a vault, and a row
that cannot be shown, beside the others.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import pytest
from sqlalchemy import update

from custody.common.terminal import Exit
from custody.server.store.models import ProposalRow, VaultRow
from tests.support.asgi import asgi_client
from tests.support.console import Visitor
from tests.support.custody import SHOP, SIGNERS, ok
from tests.support.examples import drawn
from tests.support.replacing import finished, made, status
from tests.support.screening import answer, bind, screen, sweep_overdue
from tests.support.sdk import sdk
from tests.support.staff import add_role, set_states


def proposed(desk, **changes) -> str:
    return made(desk.propose(100_000, recipients=[SHOP], fee_rate="2", **changes))


def test_a_list_of_a_person_or_of_days_has_nothing_else(desk, service):
    """Of proposals, and of the log."""
    made = proposed(desk)
    today = f"{desk.world.clock():%Y-%m-%d}"
    for mine, others in (
        (("--by", "admin@example.org"), ("--by", "bob@example.org")),
        (("--from", today, "--to", today), ("--to", "2020-01-01")),
    ):
        listed = json.loads(service("proposal", "list", *mine, "--json").stdout)
        assert made in {one["psbt_id"] for one in listed}
        assert service("proposal", "list", *others).stdout == "None is found.\n"
        assert made in service("audit", "tail", *mine).stdout
        assert made not in service("audit", "tail", *others).stdout


def test_a_payment_is_bumped(desk, service):
    psbt_id = proposed(desk)
    known = len(desk.rows(ProposalRow))
    refused = service("proposal", "bump", psbt_id[:8], "--fee-rate", "9", answers="n\n")
    assert (refused.exit_code, len(desk.rows(ProposalRow))) == (Exit.DECLINED, known)
    assert "The new one's fee: " in refused.stderr
    done = service("proposal", "bump", psbt_id[:8], "--fee-rate", "9", "--json", answers="y\n")
    assert done.exit_code == Exit.OK, done.output
    newer = json.loads(done.stdout)
    assert desk.proposal(psbt_id)["replaced_by_psbt_id"] == newer["psbt_id"]
    finished(desk, newer["psbt_id"])


def test_small_coins_become_one_where_that_saves(desk, service):
    assert "to make one" in service("proposal", "consolidate", "Treasury", answers="y\n").stderr
    desk.deposit(*range(5_000, 9_000, 500))
    asked = ("proposal", "consolidate", "Treasury", "--coins", "8", "--fee-rate", "1")
    refused = service(*asked, answers="n\n")
    assert refused.exit_code == Exit.DECLINED
    assert "8 coins of 54,000 sats become one" in refused.stderr
    address = desk.wallets()[0]["receive_address"]
    done = json.loads(service(*asked, "--json", answers="y\n").stdout)
    assert done["recipients"] == [address]
    assert done["amounts_sats"] == [54_000 - done["fee_sats"]]
    assert len(desk.coins(done["psbt_id"])) == 8


def test_a_proposal_is_cancelled_and_what_is_out_is_said(desk, service):
    # What another program wrote makes no line of its own.
    psbt_id = proposed(desk, description="Rent\n  Status:  confirmed")
    asked = service("proposal", "cancel", psbt_id, answers="n\n")
    assert asked.exit_code == Exit.DECLINED
    for shown in (asked.output, service("proposal", "show", psbt_id).output):
        assert "Rent·  Status:  confirmed" in shown
    assert service("proposal", "cancel", psbt_id[:8], "--yes").exit_code == Exit.USAGE
    assert status(desk, psbt_id) == ["PENDING"]
    told = service("proposal", "cancel", psbt_id, "--reason", "twice\n  Status:  confirmed", answers="y\n")
    assert told.exit_code == Exit.OK, told.output
    assert "The platform has no signature of it; its coins are free. A signer may hold one:" in told.stdout
    assert status(desk, psbt_id) == ["CANCELLED"]
    assert "twice·  Status:  confirmed" in service("proposal", "show", psbt_id).output
    signed = proposed(desk)
    desk.approve("alice", signed)
    assert "Its coins stay locked" in service("proposal", "cancel", signed, answers="y\n").stdout
    freed = service("proposal", "cancel", signed, "--release-coins", answers="y\n").stdout
    assert "Its coins are free: do not pay again" in freed


def test_what_screening_holds_is_said_and_until_when(desk, service):
    program = screen(desk)
    psbt_id = proposed(desk)
    answer(desk, program, "hold:asked\n  the bank")
    said = service("proposal", "show", psbt_id).output
    assert "Screening: held until 1 Mar 2026, 12:" in said
    assert ", and no signer gets it: asked  the bank" in said
    assert [psbt_id[:8], "held"] in [
        line.split()[:2] for line in service("proposal", "list").output.splitlines()
    ]
    answer(desk, program, None)
    desk.world.clock.advance(minutes=1)
    sweep_overdue(desk)
    assert "Screening: unanswered: asked  the bank" in service("proposal", "show", psbt_id).output
    bind(desk, screening_webhook_id="none")


def test_who_declined_is_shown_with_the_reason_and_the_time(desk, service):
    psbt_id = proposed(desk)
    ok(desk.decline("alice", psbt_id, "not\nagreed"))
    line = next(line for line in service("proposal", "show", psbt_id).stdout.splitlines() if "alice@" in line)
    assert "declined: not·agreed" in line
    assert " UTC" in line


def test_a_member_is_removed_after_confirmation(desk, service):
    desk.world.member(1, "dora@example.org")
    assert service("member", "remove", "dora@example.org", answers="n\n").exit_code == Exit.DECLINED
    told = service("member", "remove", "dora@example.org", answers="y\n")
    assert told.stdout == "dora@example.org is no longer a member.\n", told.output
    assert "dora@example.org" not in {one.email for one in sdk(desk.world, "admin@example.org").members(1)}


def change(desk, what):
    with desk.store.write() as db:
        db.execute(what)


@pytest.fixture(scope="module")
def reserve(desk):
    return ok(desk.create_vault("Reserve", m=3))["id"]


def test_p102_an_altered_vault_is_named_and_the_others_are_listed(desk, service, reserve):
    change(desk, update(VaultRow).where(VaultRow.id == reserve).values(cycle_day=99))
    done = service("vault", "list")
    assert done.exit_code == Exit.OK
    assert "Treasury" in done.stdout
    assert f"Not shown: id {reserve}. What is stored of it cannot be read" in done.stderr
    change(desk, update(VaultRow).where(VaultRow.id == reserve).values(cycle_day=1))


MARKS = {"frozen": "Frozen:", "too few signers": "Stopped:", "replaced": "Replaced:"}
# Of a signer: at the command, and on the vault's page.
STATES = {
    "active": ("", "in use"),
    "superseded": (
        "(key superseded)",
        "another device replaced it: it approves only moves between the workspace's vaults",
    ),
    "lost": ("(key lost)", "lost: it approves nothing"),
    "silent": ("(may not approve)", "in use; not of a member who may approve"),
}


def marked(text: str, words: Iterable[str] = MARKS) -> set[str]:
    return {mark for mark, shown in zip(MARKS, words, strict=True) if shown in text}


def doors(desk, service, person) -> Iterator[tuple[str, dict[str, set[str]]]]:
    """Each place that shows the vaults, and by the vault's name what it says of it."""
    here = f"/console/w/{desk.workspace_id}"
    by_name = {each["name"]: each for each in desk.wallets()}

    def fields(shown: dict) -> set[str]:
        says = (shown["is_frozen"], shown["lacks_signers"], "replaced_by" in shown)
        return {mark for mark, holds in zip(MARKS, says, strict=True) if holds}

    def parts(texts: Sequence[str]) -> dict[str, set[str]]:
        """The first text of each: on the overview its payments follow."""
        return {name: marked(next(text for text in texts if name in text)) for name in by_name}

    yield "list-wallets", {name: fields(each) for name, each in by_name.items()}
    named = ok(desk.admin.get("/api/v1/vault-names", workspace_id=1))
    yield "vault-names", {each["name"]: fields(each) for each in named}
    shown = {name: service("vault", "show", name).stdout for name in by_name}
    yield "vault show", {name: marked(text, MARKS.values()) for name, text in shown.items()}
    pages = {name: person.open(f"{here}/vaults/{one['id']}").page.tags for name, one in by_name.items()}
    labels = {name: {tag.attributes.get("aria-label") for tag in tags} for name, tags in pages.items()}
    yield "page", {name: marked(str(words).lower()) for name, words in labels.items()}
    for words in (("vault", "list"), ("limit", "list")):
        yield " ".join(words), parts(service(*words).stdout.splitlines())
    for path, tag in (("/", "tr"), ("/vaults", "li"), ("/limits", "li"), ("/tokens", "option")):
        yield path, parts([each.words for each in person.open(here + path).page.all(tag)])


def test_what_stops_a_vault_is_said_wherever_it_is_shown(desk, service, reserve):
    silent = add_role(desk.world, "Silent")
    ids = {"Treasury": desk.vault["id"], "Reserve": reserve}
    every = list(product(product(STATES, repeat=3), product([False, True], repeat=4)))
    with asgi_client(desk.world.platform.asgi) as http:
        person = Visitor(http).sign_in("admin@example.org")
        for states, marks in drawn(every, 20, of=__name__):
            # Nobody asks so often in a minute.
            desk.world.clock.advance(seconds=20)
            set_states(desk, dict(zip(SIGNERS, states, strict=True)), silent)
            expected = {}
            for name, m, is_frozen, is_replaced in zip(ids, (2, 3), marks[:2], marks[2:], strict=True):
                (other,) = {*ids.values()} - {ids[name]}
                now = desk.world.clock() if is_frozen else None
                now = {"frozen_at": now, "frozen_by": now and 1}
                row = update(VaultRow).where(VaultRow.id == ids[name])
                change(desk, row.values(**now, replaced_by_id=other if is_replaced else None))
                holds = (is_frozen, states.count("active") < m, is_replaced)
                expected[name] = {mark for mark, is_so in zip(MARKS, holds, strict=True) if is_so}
            for door, said in doors(desk, service, person):
                assert said == expected, (door, states, marks)
            page = person.open(f"/console/w/{desk.workspace_id}/vaults/{desk.vault['id']}")
            told = service("vault", "show", "Treasury").stdout.partition("last signed:\n")[2].splitlines()
            words = [(line.split(maxsplit=4)[4:], row[1]) for line, row in zip(told, page.rows, strict=False)]
            assert words == [([shown] if shown else [], said) for shown, said in map(STATES.get, states)]
