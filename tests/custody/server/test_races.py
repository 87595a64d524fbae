"""Two platforms over one database, asked at the same moment: every race has one winner,
and the audit chains stay whole.

Both requests are about to begin their writing transaction before either may;
the database decides which is first.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle

import httpx
import pytest
from sqlalchemy import func, select

from custody.schemas.auth import REFRESH_COOKIE
from custody.schemas.call import PermissionName
from custody.server.app import Platform, open_platform
from custody.server.audit.verification import read_through
from custody.server.opening import PlatformDependencies
from custody.server.people.staff import staff_of
from custody.server.proposals.screening import screening_deadlines
from custody.server.rules.roles import EVERY_PERMISSION, KEPT
from custody.server.settings import Settings
from custody.server.store import Store
from custody.server.store.models import (
    CoinLockRow,
    JobRow,
    ProposalRow,
    UserRow,
)
from tests.support.asgi import asgi_client
from tests.support.backends import Unreliable
from tests.support.custody import SHOP, SIGNERS, Desk, ok, refused
from tests.support.platform import CHEAP, PASSWORD, As, key_offer, register_key, seed, sign_challenge
from tests.support.profiles import grant
from tests.support.screening import answer, screen
from tests.support.staff import Someone, add_role, add_someone, change_role, remove, remove_permission
from tests.support.two_people import DORA, ask, decide, ruled

PATIENCE_SECONDS = 90
ALICE = "alice@example.org"
SIGNER_ROLE = 2


@dataclass
class Meeting:
    """The first callers, as many as there are platforms, go on together; later ones are not held up."""

    parties: int
    barrier: threading.Barrier = field(init=False)
    came: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.parties)

    def join(self) -> None:
        with self.lock:
            self.came += 1
            is_awaited = self.came <= self.parties
        if is_awaited:
            self.barrier.wait(PATIENCE_SECONDS)


@dataclass
class Pair:
    """One desk, whose database a second platform serves too."""

    desk: Desk
    second: Platform
    https: tuple[httpx.Client, httpx.Client]
    node: Unreliable

    @property
    def platforms(self) -> tuple[Platform, Platform]:
        return self.desk.world.platform, self.second

    def elsewhere(self, person: As) -> As:
        """The same person and session, at the second platform."""
        return As(self.https[1], person.headers)

    @property
    def there(self) -> Desk:
        """The same desk at the second platform."""
        signers = {name: self.elsewhere(person) for name, person in self.desk.signers.items()}
        return replace(self.desk, admin=self.elsewhere(self.desk.admin), signers=signers)

    def at_once(self, *acts: Callable[[], object]) -> list:
        """All, with the writing transactions of the two platforms begun together."""
        meeting = Meeting(2)
        stores = [platform.services.store for platform in self.platforms]
        for store in stores:
            store.write = partial(_meet_and_write, type(store), store, meeting)
        try:
            with ThreadPoolExecutor(len(acts)) as pool:
                return [future.result() for future in [pool.submit(act) for act in acts]]
        finally:
            for store in stores:
                del store.write

    def each_at_once(self, act: Callable[[As], object], person: As) -> list:
        return self.at_once(lambda: act(person), lambda: act(self.elsewhere(person)))

    def count(self, *what: object) -> int:
        with self.second.services.store.read() as db:
            return db.scalar(select(func.count()).select_from(what[0]).where(*what[1:]))


def _meet_and_write(kind: type[Store], store: Store, meeting: Meeting):
    meeting.join()
    return kind.write(store)


@pytest.fixture
def pair(tmp_path, desk: Desk, database: str) -> Iterator[Pair]:
    with _second(tmp_path, desk, database) as pair:
        yield pair
        assert read_through(pair.second.services.store).findings == ()


@contextmanager
def _second(tmp_path, desk: Desk, database: str) -> Iterator[Pair]:
    """The embedded chain has one owner; the second platform reaches it as it would a node."""
    world = desk.world
    outside = PlatformDependencies(clock=world.clock, hasher=CHEAP, mailer=world.mail)
    settings = Settings(state=tmp_path / "state", database_url=database, broadcast_wait_seconds=0)
    second = open_platform(settings, outside)
    node = Unreliable(desk.chain)
    for platform in (world.platform, second):
        platform.background.backends["regtest"] = node
    try:
        with asgi_client(second.asgi) as http:
            yield Pair(desk, second, (world.http, http), node)
    finally:
        second.close()


def a_send(pair: Pair, amount: int) -> dict:
    place = {"wallet_id": pair.desk.vault["id"], "workspace_id": pair.desk.workspace_id}
    return place | {"tx_type": "send", "recipients": [SHOP], "amounts_sats": [amount]}


def create(pair: Pair, amount: int, key: str | None = None) -> Callable[[As], httpx.Response]:
    headers = {} if key is None else {"Idempotency-Key": key}
    return lambda person: person.post("/api/v1/create-psbt", a_send(pair, amount), **headers)


def codes(answers: list[httpx.Response]) -> list[str]:
    return sorted("ok" if answer.status_code == 200 else answer.json()["code"] for answer in answers)


def test_p26_p41_one_idempotency_key_has_one_effect(pair: Pair) -> None:
    """With two bodies, the effect of one."""
    pair.desk.deposit(*[500_000] * 3)
    admin = pair.desk.admin
    answers = pair.each_at_once(create(pair, 100_000, "k" * 20), admin)
    assert ok(answers[0]) == ok(answers[1])
    assert pair.count(ProposalRow) == pair.count(CoinLockRow) == 1
    answers = pair.at_once(
        lambda: create(pair, 100_000, "o" * 20)(admin),
        lambda: create(pair, 100_001, "o" * 20)(pair.elsewhere(admin)),
    )
    assert codes(answers) == ["IDEMPOTENCY_KEY_REUSED", "ok"]
    assert pair.count(ProposalRow) == 2


def test_p56_a_change_is_confirmed_once_or_declined(pair: Pair) -> None:
    """Two administrators at two processes: one word counts."""
    desk = pair.desk
    dora = ruled(desk.world, desk.admin)
    limit = {"role_id": SIGNER_ROLE, "new_transaction_limit": "5", "cycle_period": "M", "cycle_day": 1}
    for other in ("confirm", "decline"):
        change = ok(ask(desk.admin, "update-role-policies", **limit))
        before = desk.audited()
        answers = pair.at_once(
            partial(decide, dora, change), partial(decide, pair.elsewhere(dora), change, other)
        )
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        said = desk.audited()[len(before) :]
        assert said in (["ROLE_POLICY_REPLACED", "CHANGE_CONFIRMED"], ["CHANGE_DECLINED"])


def test_p53_a_freeze_and_the_last_approval(pair: Pair) -> None:
    """Whoever is first: no worker sends anything after the freeze was answered."""
    desk = pair.desk
    desk.deposit(500_000)
    psbt_id = ok(desk.propose(100_000))["psbt_id"]
    desk.approve("alice", psbt_id)
    signed = desk.signed("bob", psbt_id)
    approval, shown = pair.at_once(lambda: desk.submit("bob", psbt_id, signed), pair.there.freeze)
    met = [psbt_id] if approval.status_code == 200 else []
    assert shown["is_frozen"]
    assert met or refused(approval, 409, "VAULT_FROZEN")
    place = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    assert ok(desk.admin.get("/api/v1/vault-controls", **place))["waiting_psbt_ids"] == met
    desk.settle()
    record = desk.proposal(psbt_id)
    assert record["status"] == ("STALLED" if met else "PENDING")
    assert desk.chain.transaction(record["txid_expected"]) is None


CANCELLED, REFUSED, PASSED = "PROPOSAL_CANCELLED", "SCREENING_REFUSED", "SCREENING_PASSED"
# What is stored and recorded where an answer comes as a proposal ends; late: as it is due to end.
OUTCOMES = {
    "cancel": [("allowed", "CANCELLED", [PASSED, CANCELLED]), ("overtaken", "CANCELLED", [CANCELLED])],
    "deadline": [("unanswered", "REJECTED", [REFUSED])],
    "expiry": [("overtaken", "EXPIRED", ["PROPOSAL_EXPIRED"])],
    "worker": [("allowed", "PENDING", [PASSED])],
}


@pytest.mark.parametrize(
    ("what", "late"), [("cancel", 0), ("deadline", 60), ("expiry", 2**21), ("worker", 0)]
)
def test_a_screenings_answer_and_what_ends_the_question_have_one_outcome(
    pair: Pair, what: str, late: int
) -> None:
    desk = pair.desk
    desk.deposit(500_000)
    program = screen(desk, screening_seconds=60)
    psbt_id, program.says = ok(desk.propose(100_000))["psbt_id"], "allow"
    here, there = (platform.background for platform in pair.platforms)
    there.webhook_jobs.sender = program
    ends = {
        "cancel": lambda: pair.there.tell("cancel-psbt", psbt_id=psbt_id),
        "deadline": screening_deadlines(there.store, there.tools),
        "expiry": there.expiry(),
        "worker": there.outbox("questions").run_due,
    }
    outbox = here.outbox("questions")
    answers = outbox.run_due
    if late:
        # Its time begins once it is asked.
        answer(desk, program, "hold")
        desk.world.clock.advance(seconds=1)
        program.says, task = "allow", outbox.lease()
        heard = here.webhook_jobs(task)
        outbox.handlers["question"] = lambda _task: heard
        answers = partial(outbox.perform, task)
        desk.world.clock.advance(seconds=late)
    pair.at_once(answers, ends[what])
    (row,) = desk.rows(ProposalRow)
    said = [each for each in desk.audited() if each.startswith("SCREENING") or row.status in each]
    assert (row.screening, row.status, said) in OUTCOMES[what]
    assert len(program.asked) == (2 if late else 1)


@pytest.mark.parametrize("code", ["NOT_IN_ADDRESS_BOOK", "NOT_A_SIGNER"])
def test_p54_p55_what_a_vault_allows_is_narrowed_at_the_last_approval(pair: Pair, code: str) -> None:
    """An entry is taken out, or makers may approve no more, and Bob made it. Whoever is first: it is approved
    and sent, or waits with one approval.
    """
    desk = pair.desk
    desk.deposit(500_000)
    entry = desk.enter("Shop", SHOP)
    desk.bind(only_address_book=True)
    grant(desk, "Signer", "MANAGE_WORKSPACE")
    desk.limit_role("1", role_id=SIGNER_ROLE)
    psbt_id = ok(desk.tell("create-psbt", "bob", **a_send(pair, 100_000)))["psbt_id"]
    desk.approve("alice", psbt_id)
    signed = desk.signed("bob", psbt_id)
    narrow = {
        "NOT_IN_ADDRESS_BOOK": lambda: ok(pair.there.tell("remove-whitelist-address", uid=entry["uid"])),
        "NOT_A_SIGNER": lambda: pair.there.bind(only_address_book=True, maker_may_approve=False),
    }
    approval, _ = pair.at_once(lambda: desk.submit("bob", psbt_id, signed), narrow[code])
    is_met = approval.status_code == 200
    assert is_met or refused(approval, 403, code)
    if is_met:
        assert desk.audited()[-1] in {"ADDRESS_REMOVED", "VAULT_CONTROLS_REPLACED"}
    desk.settle()
    record = desk.proposal(psbt_id)
    assert (record["status"], record["collected_signatures"]) == (
        ("BROADCASTING", 2) if is_met else ("PENDING", 1)
    )


def test_p53_two_who_unfreeze_at_once_are_two(pair: Pair) -> None:
    desk = pair.desk
    # The same person twice is one.
    for other, expected in (("alice", [True, True]), ("bob", [False, True])):
        desk.freeze()
        shown = pair.at_once(partial(desk.unfreeze, "alice"), partial(pair.there.unfreeze, other))
        assert sorted(each["is_frozen"] for each in shown) == expected


def test_p16_a_coin_is_in_one_of_two_proposals(pair: Pair) -> None:
    desk = pair.desk
    desk.deposit(500_000)
    assert codes(pair.each_at_once(create(pair, 100_000), desk.admin)) == ["LOCKED_FUNDS", "ok"]
    assert pair.count(ProposalRow) == pair.count(CoinLockRow) == 1


def test_p11_the_two_last_signers_and_both_workers_make_one_broadcast(pair: Pair) -> None:
    desk = pair.desk
    desk.deposit(500_000)
    psbt_id = ok(desk.propose(150_000))["psbt_id"]
    desk.approve("alice", psbt_id)
    bob, carol = (desk.signed(name, psbt_id) for name in ("bob", "carol"))
    answers = pair.at_once(
        lambda: desk.submit("bob", psbt_id, bob), lambda: pair.there.submit("carol", psbt_id, carol)
    )
    assert [ok(answer)["status"] for answer in answers] == ["SIGNED", "SIGNED"]
    assert [ok(answer)["collected_signatures"] for answer in answers] == [2, 2]
    assert sum("not recorded" in (ok(answer)["detail"] or "") for answer in answers) == 1
    assert pair.count(JobRow, JobRow.kind == "broadcast") == 1
    assert desk.audited().count("PROPOSAL_FINALISED") == 1
    workers = [platform.background.outbox() for platform in pair.platforms]
    assert sum(pair.at_once(workers[0].run_due, workers[1].run_due)) == 1
    assert pair.node.broadcasts == [desk.proposal(psbt_id)["txid"]]
    assert desk.proposal(psbt_id)["status"] == "BROADCASTING"


@pytest.mark.parametrize("what", ["asked for", "asked for no more", "moved"])
def test_p111_the_named_approval_and_what_it_hangs_on(pair: Pair, what: str) -> None:
    """The controls ask for Carol at the last approval, or for her no more at hers, or she leaves the role
    then that they ask for. Whoever is first: it is sent once, or waits with all its signatures.
    """
    desk = pair.desk
    desk.deposit(500_000)
    finance = add_role(desk.world, "Finance", {PermissionName.PAYMENT_APPROVE})
    for name in ("bob", "carol"):
        ok(change_role(desk.admin, desk.user_ids[name], finance))
    carol = [f"user:{desk.user_ids['carol']}"]
    if what != "asked for":
        desk.bind(approvers=[f"role:{finance}"] if what == "moved" else carol)
    psbt_id = ok(desk.propose(150_000))["psbt_id"]
    names = ("alice", "carol") if what == "moved" else SIGNERS
    *first, last = (names[0], "bob") if what == "asked for" else names
    for name in first:
        desk.approve(name, psbt_id)
    signed, there = desk.signed(last, psbt_id), pair.there
    other = {
        "asked for": lambda: there.bind(approvers=carol),
        "asked for no more": lambda: there.bind(approvers=[]),
        "moved": lambda: ok(change_role(there.admin, desk.user_ids["carol"], SIGNER_ROLE)),
    }
    answer, _ = pair.at_once(lambda: desk.submit(last, psbt_id, signed), other[what])
    workers = [platform.background.outbox() for platform in pair.platforms]
    for _ in range(2):
        pair.at_once(workers[0].run_due, workers[1].run_due)
    is_final = what == "asked for no more" or ok(answer)["status"] == "SIGNED"
    # Asked for before it is sent, whichever was first.
    is_met = is_final and what != "asked for"
    record = desk.proposal(psbt_id)
    assert record["status"] == ("BROADCASTING" if is_met else "PENDING")
    assert bool(record["waits_for"]) is not is_met
    assert (len(pair.node.broadcasts), desk.audited().count("PROPOSAL_FINALISED")) == (is_met, is_final)
    if what == "moved":
        said = [each for each in desk.audited() if each in {"MEMBER_ROLE_CHANGED", "SIGNATURE_SUBMITTED"}]
        assert is_met == (said[-1] == "MEMBER_ROLE_CHANGED")


def test_an_approval_and_the_end_of_its_proposal_do_not_both_count(pair: Pair) -> None:
    """The threshold's signature at one platform, and the decline that loses it at the other."""
    desk = pair.desk
    desk.deposit(500_000)
    psbt_id = ok(desk.propose(150_000))["psbt_id"]
    desk.approve("alice", psbt_id)
    ok(desk.decline("bob", psbt_id))
    signed = desk.signed("carol", psbt_id)
    approved, declined = pair.at_once(
        lambda: desk.submit("carol", psbt_id, signed), lambda: pair.there.decline("carol", psbt_id)
    )
    status = desk.proposal(psbt_id)["status"]
    if status == "SIGNED":
        assert "cannot revoke a signature" in refused(declined, 409, "STATE_CONFLICT")["detail"]
        assert pair.count(JobRow, JobRow.kind == "broadcast") == 1
    else:
        assert status == "REJECTED"
        refused(approved, 409, "STATE_CONFLICT")
        assert pair.count(JobRow, JobRow.kind == "broadcast") == pair.count(CoinLockRow) == 0


def test_p40_one_refresh_token_used_twice_at_once_leaves_one_line_of_successors(pair: Pair) -> None:
    world = pair.desk.world
    signed_in = world.login(ALICE)
    sid = signed_in.json()["sid"]

    def refresh(http: httpx.Client, token: str) -> httpx.Response:
        cookie = {"Cookie": f"{REFRESH_COOKIE}={token}"}
        return http.post("/auth/refresh", json={"sid": sid}, headers=cookie)

    def both(first: str, second: str) -> list[httpx.Response]:
        for http in pair.https:
            http.cookies.clear()
        return pair.at_once(partial(refresh, pair.https[0], first), partial(refresh, pair.https[1], second))

    token = signed_in.cookies[REFRESH_COOKIE]
    first, second = both(token, token)
    tokens = [ok(answer) and answer.cookies[REFRESH_COOKIE] for answer in (first, second)]
    assert len({*tokens, token}) == 3
    # Two live successors would allow two users: using the first ends the other, and with it the session.
    assert sorted(answer.status_code for answer in both(*tokens)) == [200, 401]
    assert world.audit_actions().count("REFRESH_TOKEN_REUSED") == 1


def deliver(pair: Pair) -> None:
    """Both platforms' mail workers at once: each letter is sent by one of them."""
    workers = [platform.background.outbox("mail") for platform in pair.platforms]
    pair.at_once(workers[0].run_due, workers[1].run_due)


def test_p38_one_mailed_code_signs_in_once(pair: Pair) -> None:
    world, mails = pair.desk.world, len(pair.desk.world.mail.sent)
    ok(world.http.post("/auth/register", json={"email": DORA, "password": PASSWORD}))
    deliver(pair)
    token = ok(world.login(DORA))["token_2fa"]
    deliver(pair)
    assert len(world.mail.sent) == mails + 2
    body = {"token_2fa": token, "otp": world.mail.newest_code()}
    answers = pair.at_once(*(partial(http.post, "/auth/otp-validate", json=body) for http in pair.https))
    assert sorted(answer.status_code for answer in answers) == [200, 401]


def test_p39_one_address_registered_twice_is_one_account(pair: Pair) -> None:
    body = {"email": DORA, "password": PASSWORD}
    answers = pair.at_once(*(partial(http.post, "/auth/register", json=body) for http in pair.https))
    assert ok(answers[0]) == ok(answers[1])
    assert pair.count(UserRow, UserRow.email == DORA) == 1
    deliver(pair)
    assert len({mail.subject for mail in pair.desk.world.mail.sent[-2:]}) == 2


ACTS: dict[str, Callable[[As, Someone], httpx.Response]] = {
    "remove": lambda me, other: remove(me, other.user_id),
    "demote": lambda me, other: change_role(me, other.user_id, SIGNER_ROLE),
    "disarm": lambda me, other: remove_permission(me, other.role_id, "MANAGE_USERS"),
    "leave": lambda me, _: me.post("/api/v1/leave-workspace", {"workspace_id": 1}),
}


def test_p27_two_administrators_who_remove_each_other_leave_one(pair: Pair) -> None:
    """Or take each other's place. The second is refused: it would remove the last administrator, or its
    sender lost the right.
    """
    before = [pair.desk.admin]
    pairs = (("remove", "remove"), ("disarm", "demote"), ("leave", "leave"), ("leave", "remove"))
    for number, (anns, beas) in enumerate(pairs):
        names = f"Ann{number}", f"Bea{number}"
        ann, bea = (add_someone(pair.desk.world, name, EVERY_PERMISSION) for name in names)
        left = [each.post("/api/v1/leave-workspace", {"workspace_id": 1}).status_code for each in before]
        assert 200 in left, "whoever administered it until now has gone"
        acts = partial(ACTS[anns], ann.calls, bea), partial(ACTS[beas], pair.elsewhere(bea.calls), ann)
        answers = codes(pair.at_once(*acts))
        assert answers.count("ok") == 1, (anns, beas)
        assert set(answers) <= {"ok", "LAST_ADMIN", "PERMISSION_DENIED", "NOT_FOUND"}
        with pair.second.services.store.read() as db:
            staff = staff_of(db, 1)
            assert staff.has_owner, "P58"
            assert staff.held.issuperset(KEPT)
        before = [ann.calls, bea.calls]


# For proposals of 60,000 sat and a small fee.
MOVED = 60_000


@pytest.fixture
def rich(pair: Pair) -> Pair:
    """A coin for each proposal: none loses for want of one."""
    pair.desk.deposit(*[200_000] * 8)
    return pair


def proposing(pair: Pair, person: As) -> tuple[As, str, dict]:
    return person, "create-psbt", a_send(pair, MOVED) | {"fee_rate": "1"}


def limiting(pair: Pair, limit: str) -> tuple[As, str, dict]:
    body = {"role_id": 1, "workspace_id": 1, "new_transaction_limit": limit, "cycle_period": "M"}
    return pair.desk.admin, "update-role-policies", body | {"cycle_day": 1}


def by_turns(pair: Pair, *calls: tuple[As, str, dict]) -> list[str]:
    """How each call ends where all come at once, to the two platforms in turn."""
    acts = [
        partial(As(http, person.headers).post, f"/api/v1/{path}", body)
        for (person, path, body), http in zip(calls, cycle(pair.https), strict=False)
    ]
    return codes(pair.at_once(*acts))


def test_p17_of_proposals_that_breach_the_role_limit_together_one_passes(rich: Pair) -> None:
    admin = rich.desk.admin
    rich.desk.limit_role("0.001")
    assert by_turns(rich, *[proposing(rich, admin)] * 6) == ["ROLE_LIMIT_EXCEEDED"] * 5 + ["ok"]
    (proposal,) = ok(admin.get("/api/v1/psbt", workspace_id=1))
    used = ok(admin.get("/api/v1/get-my-limits", workspace_id=1))["Used"]
    assert used == f"0.{MOVED + proposal['fee_sats']:08d}"


def test_p22_a_limit_lowered_meanwhile_counts_for_whatever_comes_after_it(rich: Pair) -> None:
    """The audit chain says who came first; after the lowering only what fits the lower limit passed."""
    propose = proposing(rich, rich.desk.admin)
    rich.desk.limit_role("0.0025")
    answers = by_turns(rich, *[propose] * 3, limiting(rich, "0.001"), *[propose] * 2)
    assert set(answers) <= {"ok", "ROLE_LIMIT_EXCEEDED"}
    told = rich.desk.audited()
    order = [event for event in told if event in {"PROPOSAL_CREATED", "ROLE_POLICY_REPLACED"}]
    # The first of the two replacements was the preparation.
    lowered = order.index("ROLE_POLICY_REPLACED", order.index("ROLE_POLICY_REPLACED") + 1)
    before, after = order[1:lowered].count("PROPOSAL_CREATED"), order[lowered:].count("PROPOSAL_CREATED")
    assert before <= 4
    assert after == (1 if before == 0 else 0)
    assert answers.count("ok") == before + after + 1


def test_one_device_becomes_one_persons_and_is_registered_once_however_often_it_is_sent(pair: Pair) -> None:
    """Two people hold it at the same time, as thieves and owners do."""
    world, device = pair.desk.world, seed(9)
    people = []
    for email in (DORA, "emil@example.org"):
        world.member(pair.desk.workspace_id, email)
        people.append(world.as_user(email))
    dora, emil = people
    answers = pair.at_once(
        lambda: register_key(dora, seed(8)), lambda: register_key(pair.elsewhere(dora), seed(8))
    )
    assert {answer.status_code for answer in answers} == {200}
    assert len(ok(dora.get("/api/v1/keys"))) == 1

    offer = key_offer(device)
    bodies = []
    for each in people:
        proof = sign_challenge(device, ok(each.post("/api/v1/key-challenge", offer)))
        bodies.append({**offer, "replace": True, "proof": proof})
    answers = pair.at_once(
        lambda: dora.post("/api/v1/register-key", bodies[0]),
        lambda: pair.elsewhere(emil).post("/api/v1/register-key", bodies[1]),
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]


def test_a_vaults_account_is_taken_by_one_vault(pair: Pair) -> None:
    """The signers have one free account left: two vaults at once, under two names."""
    desk = pair.desk
    alone = {"m": 1, "signers": [desk.user_ids["alice"]]}
    answers = pair.at_once(
        lambda: desk.create_vault("one", **alone), lambda: pair.there.create_vault("other", **alone)
    )
    assert codes(answers) == ["KEY_ACCOUNTS_EXHAUSTED", "ok"]
