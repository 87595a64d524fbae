"""A vault's screening: the operator's own program lets a proposal through, or refuses it, before any signer
gets it. It is asked until it decides or its time is over, and one of both counts.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from custody.schemas.webhooks import MAX_SCREENING_ANSWER
from custody.server.background import QUESTION_THREADS
from custody.server.rules.defaults import LEASE
from custody.server.store.models import CoinLockRow
from custody.server.webhooks.sending import DeliveryTrouble
from tests.support.certificates import certificate_for
from tests.support.custody import SHOP, Desk, neighbour_of, ok, open_desk, refused
from tests.support.examples import examples
from tests.support.history import listed_coins
from tests.support.receiver import HOST, answering, receiver
from tests.support.replacing import bump, cancel, made, status, take_back
from tests.support.screening import URL, Program, Says, answer, bind, hook, screen, sweep_overdue
from tests.support.two_people import ask, decide, ruled
from tests.support.webhooks import told

DEADLINE = 60
TIMED_OUT = DeliveryTrouble.TIMED_OUT
CALLS_NOBODY = DeliveryTrouble.ADDRESS_NOT_PUBLIC
OPEN = {"only_address_book": False, "maker_may_approve": True}
NO_DECISION = (
    b"", b"ok", b"[]", b'"allow"', b"{}", b'{"decision": "Allow"}', b'{"decision": ["allow"]}',
    b"[" * 3_000, b'{"decision": "allow"}' + b" " * MAX_SCREENING_ANSWER,
    b'{"decision": "allow"', b"\xff{}", b'{"decision": "refuse", "decision": "allow"}',
    b'{"decision": "allow"} {}',
    b'{"decision": "allow", "a": [{"b": 1, "b": 1}]}',
    b'{"decision": "al\xfflow"}', b'{"decision": "\\ud83d"}',
)  # fmt: skip
REFUSED = "The vault's screening refused it"
REASONS = (
    (b'{"decision": "refuse", "reason": 7, "more": {}}', f"{REFUSED}."),
    (b'{"decision": "refuse", "reason": "on a\\u202e list\\n"}', f"{REFUSED}: on a list"),
    (b'{"decision": "refuse", "reason": "%s"}' % (b"x" * 900), f"{REFUSED}: {'x' * 200}"),
    (b'{"decision": "refuse", "reason": "cut \\ud83d"}', f"{REFUSED}: cut "),
    (b'{"decision": "refuse", "reason": "\\ud83d"}', f"{REFUSED}."),
    (b'{"decision": "refuse", "reason": "b\xfcse"}', f"{REFUSED}: b\ufffdse"),
    (b'{"decision": "refuse", "reason": {"\\udc00": [null, 1e-5]}, "\\ud83d": "\\ud83d"}', f"{REFUSED}."),
)


def awaiting(desk: Desk, name: str, **query: object) -> list[str]:
    """What this signer's programs are told to sign, or find by the query."""
    wanted = {"workspace_id": desk.workspace_id} | (query or {"awaiting": "me"})
    return [each["psbt_id"] for each in ok(desk.signers[name].get("/api/v1/psbt", **wanted))]


def state_of(desk: Desk, psbt_id: str) -> str:
    return desk.proposal(psbt_id)["screening"]["state"]


def kinds_told(desk: Desk) -> list[str]:
    return [kind for kind, _ in told(desk.world, desk.workspace_id)]


def webhook_id(desk: Desk) -> str:
    (shown,) = ok(desk.admin.get("/api/v1/webhooks", workspace_id=desk.workspace_id))
    return shown["webhook_id"]


def test_no_signer_gets_it_before_it_is_let_through_and_then_as_any_other(funded: Desk) -> None:
    desk, program = funded, screen(funded)
    hook(desk, "https://books.example.org/", kinds=["*"])
    mails, own = len(desk.world.mail.sent), {"psbt_id": "", "status": "PENDING"}
    psbt_id = own["psbt_id"] = made(desk.propose(100_000, description="rent"))
    record = desk.proposal(psbt_id)
    assert (record["screening"]["state"], record["may_be_replaced"]) == ("held", False)
    assert {lock.family_id for lock in desk.rows(CoinLockRow)} == {psbt_id}
    assert desk.used() != "0.00000000", "it counts for the limit"
    lists = {"awaiting": "me"}, {"status": "PENDING"}, {"search": "rent"}, {"vault_id": desk.vault["id"]}
    for query in lists:
        assert awaiting(desk, "alice", **query) == []
    refused(desk.signers["alice"].get("/api/v1/psbt", psbt_id=psbt_id), 404, "NOT_FOUND")
    # Nor does any other answer tell them of it.
    refused(desk.submit("alice", psbt_id, desk.signed("alice", psbt_id)), 404, "NOT_FOUND")
    refused(desk.decline("alice", psbt_id), 404, "NOT_FOUND")
    both = desk.signers["alice"], desk.admin
    locked = [{each["psbt_id"] for each in listed_coins(desk, one, state="locked")} for one in both]
    assert locked == [{None}, {psbt_id}]
    for newer in (bump, take_back):
        refused(newer(desk, psbt_id, fee_rate="9"), 409, "STATE_CONFLICT")
    desk.world.clock.advance(seconds=30)
    desk.world.deliver_mail()
    assert (len(desk.world.mail.sent), kinds_told(desk)) == (mails, ["proposal.screening"])

    assert answer(desk, program, "allow") == 1
    (question,) = program.asked
    wanted = own | {"recipients": [SHOP], "amounts_sats": [100_000]}
    assert question["data"] | wanted == question["data"]
    assert (state_of(desk, psbt_id), awaiting(desk, "alice")) == ("allowed", [psbt_id])
    assert (kinds_told(desk)[-1], desk.audited()[-1]) == ("proposal.created", "SCREENING_PASSED")
    desk.later(hours=1)
    desk.world.deliver_mail()
    mailed = sorted(each.to for each in desk.world.mail.sent[mails:])
    assert mailed == [f"{name}@example.org" for name in desk.signers]
    desk.sign_off(psbt_id)
    assert status(desk, psbt_id) == ["SIGNED"]


def test_what_is_no_decision_decides_nothing_and_a_reason_never_undoes_one(funded: Desk) -> None:
    program = screen(funded, screening_seconds=86_400)
    psbt_id = made(funded.propose(100_000))
    for body in NO_DECISION:
        assert answer(funded, program, body) == 1, "it is asked again, whatever failed before"
        assert state_of(funded, psbt_id) == "held"
        funded.later(minutes=1)
    ok(cancel(funded, psbt_id))
    hook(funded, "https://books.example.org/", kinds=["*"])
    for body, expected in REASONS:
        psbt_id = made(funded.propose(100_000))
        answer(funded, program, body)
        shown = funded.proposal(psbt_id)
        why = shown["status"], shown["failure_code"], shown["failure_reason"], shown["screening"]["state"]
        assert why == ("REJECTED", "screening", expected, "refused")
        assert kinds_told(funded)[-2:] == ["proposal.screening", "proposal.rejected"]
        assert psbt_id in awaiting(funded, "alice", status="REJECTED"), "signers may see it now"


def test_it_is_asked_again_with_the_same_id_however_its_other_deliveries_fare(funded: Desk) -> None:
    """A receiver that fails gets no events for a while, and each question all the same."""
    program = screen(funded, screening_seconds=86_400)
    psbt_id = made(funded.propose(100_000))
    for _ in range(5):
        assert answer(funded, program, TIMED_OUT) == 1
        ok(funded.tell("test-webhook", webhook_id=webhook_id(funded)))
        funded.world.clock.advance(minutes=1)
    for says in ("hold", "allow"):
        assert answer(funded, program, says) == 1
        funded.world.clock.advance(minutes=1)
    assert len({each["id"] for each in program.asked}) == 1
    assert state_of(funded, psbt_id) == "allowed"
    funded.later(days=1)
    assert answer(funded, program, "refuse") == 0


def test_a_worker_that_ends_before_it_recorded_the_answer_leaves_the_question_to_another(
    funded: Desk,
) -> None:
    program = screen(funded, screening_seconds=86_400)
    psbt_id, background = made(funded.propose(100_000)), funded.world.platform.background
    program.says = "allow"
    killed = background.outbox("questions")
    killed.handlers["question"](killed.lease())
    assert (answer(funded, program, "refuse"), state_of(funded, psbt_id)) == (0, "held"), "it is leased"
    funded.world.clock.advance(seconds=LEASE.total_seconds() + 1)
    assert answer(funded, program, "refuse") == 1
    assert len({each["id"] for each in program.asked}) == 1
    assert status(funded, psbt_id) == ["REJECTED"]


def test_a_real_receivers_answer_is_read(tmp_path: Path) -> None:
    ca, context = certificate_for(tmp_path, HOST)
    own = {"resolve": lambda _host: ["127.0.0.1"], "webhook_allow": HOST, "webhook_ca_file": ca}
    with receiver(context) as asked, open_desk(tmp_path / "state", **own) as desk:
        desk.deposit(500_000)
        bind(desk, screening_webhook_id=hook(desk, asked.url()), screening_seconds=600)
        psbt_id = made(desk.propose(100_000))
        for length, state in ((22, "held"), (21, "allowed")):
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode()
            asked.answer = answering(head + b'{"decision": "allow"}')
            desk.world.clock.advance(minutes=1)
            desk.world.deliver_webhooks()
            assert state_of(desk, psbt_id) == state, "a body that is cut off says nothing"


def test_a_newer_version_of_what_was_let_through_is_not_asked_for_again(funded: Desk) -> None:
    before = made(funded.propose(100_000, fee_rate="1"))
    program = screen(funded)
    first = made(funded.propose(50_000, fee_rate="1"))
    answer(funded, program, "allow")
    for psbt_id in (before, first):
        newer = made(bump(funded, psbt_id, fee_rate="5"))
        assert funded.proposal(newer)["screening"] is None
        assert funded.proposal(made(take_back(funded, newer, fee_rate="20")))["screening"] is None
    assert len(program.asked) == 1


def test_what_a_vault_is_screened_by_is_a_webhook_of_its_workspace_that_stays(desk: Desk) -> None:
    other = desk.world.organisation("Umbrella", "other@example.org")
    stranger = desk.world.as_user("other@example.org")
    theirs = hook(desk, "https://other.example.org/", stranger, workspace_id=other.workspace_id)
    change = partial(desk.of_vault, "update-vault-controls", **OPEN)
    for named in (theirs, "unknown"):
        refused(change(screening_webhook_id=named), 404, "NOT_FOUND")
    own = hook(desk)
    ok(desk.tell("update-webhook", webhook_id=own, enabled=False))
    refused(change(screening_webhook_id=own), 409, "STATE_CONFLICT")
    ok(desk.tell("update-webhook", webhook_id=own, enabled=True))
    bind(desk, screening_webhook_id=own, screening_seconds=30)
    refused(desk.tell("delete-webhook", webhook_id=own), 409, "STATE_CONFLICT")
    refused(desk.tell("update-webhook", webhook_id=own, enabled=False), 409, "STATE_CONFLICT")
    shown = bind(desk, only_address_book=True)
    assert (shown["screening_webhook_id"], shown["screening_seconds"]) == (own, 30), "what is left out stays"
    assert bind(desk, screening_webhook_id="none")["screening_webhook_id"] is None
    ok(desk.tell("delete-webhook", webhook_id=own))


def test_two_people_change_it_and_cool_off_where_it_screens_less(desk: Desk) -> None:
    own, dora = hook(desk), ruled(desk.world, desk.admin, hours=24)

    def wanted(**controls: object) -> dict:
        return ok(ask(desk.admin, "update-vault-controls", vault_id=desk.vault["id"], **OPEN, **controls))

    change = wanted(screening_webhook_id=own)
    assert [change[each]["screening_webhook_id"] for each in ("names", "in_force")] == [URL, "none"]
    ok(decide(dora, change))
    for less in ({"screening_webhook_id": "none"}, {"screening_fails_open": True}):
        change = wanted(**less)
        assert change["in_force"]["screening_webhook_id"] == URL
        refused(decide(dora, change), 409, "STATE_CONFLICT")
        ok(decide(dora, change, "decline"))
    ok(decide(dora, wanted(screening_seconds=30)))


def test_the_program_that_the_vault_names_now_is_asked_and_decides_and_no_other_one(funded: Desk) -> None:
    program = screen(funded)
    first, second = (made(funded.propose(100_000)) for _ in range(2))
    answer(funded, program, "hold")
    funded.world.clock.advance(seconds=DEADLINE - 1)
    bind(funded, screening_webhook_id=hook(funded, "https://another.example.org/"))
    answer(funded, program, "allow")
    funded.world.clock.advance(seconds=DEADLINE - 1)
    sweep_overdue(funded)
    assert [state_of(funded, each) for each in (first, second)] == ["held", "held"], "its time begins anew"
    ok(cancel(funded, first))
    program.elsewhere = "refuse"
    answer(funded, program, "allow")
    assert status(funded, second) == ["REJECTED"]
    third = made(funded.propose(100_000))
    bind(funded, screening_webhook_id="none")
    sweep_overdue(funded)
    assert status(funded, third) == ["PENDING"], "the vault has no screening any more"


@pytest.mark.parametrize("opens", [True, False])
def test_what_a_disabled_webhook_was_not_asked_waits_until_it_is_enabled(funded: Desk, opens: bool) -> None:
    program = screen(funded, screening_fails_open=opens)
    funded.deposit(200_000)
    _, psbt_id = (made(funded.propose(100_000)) for _ in range(2))
    assert answer(funded, program, 410) == 1
    refused(funded.propose(100_000), 409, "STATE_CONFLICT")
    for _ in range(2):
        assert answer(funded, program, "refuse") == 0
        funded.later(days=1)
        sweep_overdue(funded)
        assert state_of(funded, psbt_id) == "held"
    ok(funded.tell("update-webhook", webhook_id=webhook_id(funded), enabled=True))
    assert answer(funded, program, "refuse") == 1
    assert status(funded, psbt_id) == ["REJECTED"]


def test_what_a_program_was_never_asked_goes_before_what_it_is_asked_again(funded: Desk) -> None:
    program = screen(funded, screening_seconds=86_400)
    funded.deposit(*[50_000] * 4)
    for _ in range(3):
        made(funded.propose(5_000))
    assert answer(funded, program, TIMED_OUT) == 3
    funded.world.clock.advance(minutes=1)
    psbt_id = made(funded.propose(5_000))
    answer(funded, program, "refuse")
    assert program.asked[3]["data"]["psbt_id"] == psbt_id
    funded.world.clock.advance(minutes=1)
    assert answer(funded, program, "refuse") == 3


@pytest.mark.parametrize("receivers", [1, 5])
def test_slow_receivers_of_one_organisation_keep_nobody_elses_program_waiting(
    funded: Desk, receivers: int
) -> None:
    """While a receiver hangs, the other workers go on: as many as the smallest platform has."""
    slow, program = neighbour_of(funded), screen(funded, screening_seconds=10)
    slow.deposit(*[50_000] * 5)
    for number in range(receivers):
        bind(slow, screening_webhook_id=hook(slow, f"https://slow{number}.example.org/"))
        for _ in range(5 // receivers):
            made(slow.propose(5_000))
    victim = made(funded.propose(5_000))
    outbox = funded.world.platform.background.outbox("questions")
    hanging, states = [0], list[str]()

    def others_work() -> None:
        hanging[0] += 1
        if hanging[0] < QUESTION_THREADS:
            outbox.run_due()
        states.append(state_of(funded, victim))
        hanging[0] -= 1

    program.says, program.hangs = "refuse", others_work
    outbox.run_due()
    assert set(states) == {"refused"}


# --- random lives against a model ---------------------------------------------------------------------------


@dataclass
class Model:
    """Of one proposal. ``until``: its time begins once the program is asked."""

    opens: bool
    until: timedelta | None = None
    state: str = "held"
    status: str = "PENDING"
    now: timedelta = timedelta()

    def hears(self, says: Says) -> None:
        if self.state != "held" or says == CALLS_NOBODY or (self.until and self.now >= self.until):
            return
        self.until = self.until or self.now + timedelta(seconds=DEADLINE)
        if says in ("allow", "refuse"):
            self.state, self.status = ("allowed", "PENDING") if says == "allow" else ("refused", "REJECTED")

    def sweeps(self) -> None:
        if self.state == "held" and self.until and self.now >= self.until:
            self.state, self.status = "unanswered", "PENDING" if self.opens else "REJECTED"

    def cancels(self) -> None:
        if self.status == "PENDING":
            self.state, self.status = "overtaken" if self.state == "held" else self.state, "CANCELLED"


SAYS = st.sampled_from(["allow", "refuse", "hold", "hold:wait", b"{}", TIMED_OUT, CALLS_NOBODY])
STEPS = st.one_of(
    st.tuples(st.just("says"), SAYS),
    st.tuples(st.just("again"), SAYS),
    st.tuples(st.just("wait"), st.sampled_from([1, 20, 59, 61])),
    st.tuples(st.just("sweep"), st.none()),
    st.tuples(st.just("cancel"), st.none()),
)


def decisions(desk: Desk) -> list[str]:
    return [each for each in desk.audited() if each.startswith("SCREENING")]


@example(opens=True, steps=[("says", CALLS_NOBODY), ("wait", 61), ("sweep", None)])
@given(opens=st.booleans(), steps=st.lists(STEPS, min_size=1, max_size=7))
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_comes_first_alone_decides(funded: Desk, opens: bool, steps: list) -> None:
    """Answers that are late, repeated or missing, a cancel and the deadline, in any order."""
    desk, jobs = funded, funded.world.platform.background.webhook_jobs
    desk.later(days=1)
    program = jobs.sender if isinstance(jobs.sender, Program) else screen(desk)
    # Earlier lives may have ended it: it failed for five days.
    ok(desk.tell("update-webhook", webhook_id=webhook_id(desk), enabled=True))
    bind(desk, screening_fails_open=opens)
    recorded, psbt_id = len(decisions(desk)), made(desk.propose(100_000))
    model = Model(opens)
    for what, given_ in steps:
        if what == "says":
            if answer(desk, program, given_):
                model.hears(given_)
        elif what == "again":
            last = {"workspace_id": 1, "webhook_id": webhook_id(desk), "limit": 1}
            (delivery,) = ok(desk.admin.get("/api/v1/webhook-deliveries", **last))
            desk.tell("redeliver-webhook", delivery_id=delivery["delivery_id"])
            if answer(desk, program, given_):
                model.hears(given_)
        elif what == "wait":
            desk.world.clock.advance(seconds=given_)
            model.now += timedelta(seconds=given_)
        elif what == "sweep":
            sweep_overdue(desk)
            model.sweeps()
        else:
            cancel(desk, psbt_id)
            model.cancels()
        shown = desk.proposal(psbt_id)
        assert (shown["screening"]["state"], shown["status"]) == (model.state, model.status)
        waits = model.status == "PENDING" and model.state != "held"
        assert awaiting(desk, "alice") == ([psbt_id] if waits else [])
        assert bool(desk.rows(CoinLockRow)) is (model.status == "PENDING")
        decided = len(decisions(desk)) - recorded
        assert decided == (model.state in {"allowed", "refused", "unanswered"})
    cancel(desk, psbt_id)
