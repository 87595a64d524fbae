"""A vault may ask for an approval from a role or a person: signatures enough do not send without it."""

from itertools import combinations, permutations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from custody.schemas.call import PermissionName
from custody.server.rules.approvers import missing
from custody.server.store.models import CoinLockRow, KeyRow
from tests.support.custody import CAFE, SHOP, SIGNERS, neighbour_of, ok, refused
from tests.support.examples import drawn, examples
from tests.support.platform import register_key, seed
from tests.support.profiles import grant
from tests.support.replacing import bump, cancel, made, status, take_back
from tests.support.staff import SIGNER_ROLE, add_role, add_someone, change_role
from tests.support.two_people import ask, decide, ruled

APPROVE = PermissionName.PAYMENT_APPROVE


@pytest.fixture
def finance(desk):
    """Carol's role, as it is asked for."""
    role = add_role(desk.world, "Finance", {APPROVE})
    ok(change_role(desk.admin, desk.user_ids["carol"], role))
    desk.deposit(*[100_000] * 4)
    return f"role:{role}"


def user(desk, name):
    return f"user:{desk.user_ids[name]}"


def asks_for(desk, *approvers, **more):
    bounds = {"only_address_book": False, "maker_may_approve": True, "approvers": approvers}
    return desk.of_vault("update-vault-controls", **bounds | more)


def controls(desk):
    return ok(
        desk.admin.get("/api/v1/vault-controls", workspace_id=desk.workspace_id, vault_id=desk.vault["id"])
    )


def waits_for(desk, psbt_id):
    return [(each["name"], each["user_ids"]) for each in desk.proposal(psbt_id)["waits_for"]]


def was_sent(desk, psbt_id):
    desk.settle()
    record = desk.proposal(psbt_id)
    is_known = desk.chain.transaction(record["txid_expected"]) is not None
    assert is_known == (record["status"] == "BROADCASTING"), record["status"]
    return is_known


def test_p111_signatures_enough_wait_for_the_role_and_the_transaction_has_as_many_as_it_needs(desk, finance):
    shown = ok(asks_for(desk, finance))["named_approvers"]
    carol = str(desk.user_ids["carol"])
    assert shown == [{"key": finance, "name": "Finance", "user_ids": [carol]}]
    psbt_id = made(desk.propose(20_000))
    desk.approve("alice", psbt_id)
    assert len(desk.proposal(psbt_id, "bob")["psbt_base64"]) > len(desk.proposal(psbt_id)["psbt_base64"])
    answer = desk.approve("bob", psbt_id)
    assert (answer["status"], answer["collected_signatures"]) == ("PENDING", 2)
    assert answer["detail"].endswith("waits for an approval from the role Finance.")
    assert waits_for(desk, psbt_id) == [("Finance", [carol])]
    assert not was_sent(desk, psbt_id)
    read = [desk.proposal(psbt_id, name)["psbt_base64"] for name in ("carol", "bob")]
    assert read == [desk.proposal(psbt_id)["psbt_base64"]] * 2, "what could be sent is given to nobody"
    assert desk.approve("carol", psbt_id)["collected_signatures"] == 2, "of two: more are not needed"
    assert waits_for(desk, psbt_id) == []
    assert was_sent(desk, psbt_id)
    sent = desk.chain.transaction(desk.proposal(psbt_id)["txid"]).transaction
    assert {len(item.witness) for item in sent.inputs} == {1 + desk.vault["m"] + 1}


def suffices(asked, approved):
    """The oracle tries every way of giving each that is asked for an approver of its own."""
    return any(
        all(each in keys for each, keys in zip(asked, some, strict=True))
        for some in permutations([(f"user:{user}", f"role:{role}") for user, role in approved], len(asked))
    )


def test_p111_whatever_is_asked_and_in_whatever_order_they_approve_it_is_sent_with_them_and_never_without(
    desk, finance
):
    roles = {"alice": SIGNER_ROLE, "bob": SIGNER_ROLE, "carol": int(finance[5:])}
    people = {name: (desk.user_ids[name], roles[name]) for name in SIGNERS}
    possible = [f"role:{SIGNER_ROLE}", finance, *(user(desk, name) for name in SIGNERS)]
    asked = [*combinations(possible, 1), *combinations(possible, 2)]
    cases = [(keys, order) for keys in asked for order in permutations(SIGNERS)]
    for keys, order in drawn(cases, 12, of=__name__):
        can = suffices(keys, people.values())
        assert asks_for(desk, *keys).status_code == (200 if can else 409), keys
        if not can:
            continue
        psbt_id = made(desk.propose(5_000))
        for number, name in enumerate(order, 1):
            is_met = number >= 2 and suffices(keys, [people[each] for each in order[:number]])
            was = desk.proposal(psbt_id)["status"]
            desk.submit(name, psbt_id, desk.signed(name, psbt_id))
            assert was_sent(desk, psbt_id) == (is_met or was == "BROADCASTING"), (keys, order, number)
        desk.mine()


def test_two_that_are_asked_for_are_two_people():
    for both in permutations([(1, 5), (2, 5), (3, 6)], 2):
        for asked in (("role:5", "user:1"), ("role:5", "role:6"), ("user:1", "user:2"), ("user:3", "role:6")):
            assert (missing(asked, both) == []) == (missing(asked, both[::-1]) == []) == suffices(asked, both)


def test_the_role_counts_that_an_approver_had_when_they_approved(desk, finance):
    ok(asks_for(desk, finance))
    first, second = (made(desk.propose(20_000)) for _ in range(2))
    desk.approve("carol", first)
    desk.approve("alice", second)
    ok(change_role(desk.admin, desk.user_ids["alice"], int(finance[5:])))
    ok(change_role(desk.admin, desk.user_ids["carol"], SIGNER_ROLE))
    assert desk.approve("bob", first)["status"] == "SIGNED"
    assert desk.approve("bob", second)["status"] == "PENDING", "Alice was not of Finance when she approved"
    assert awaited(desk, second) == {"alice"}, "she may approve it once more, in her role of now"
    desk.world.clock.advance(minutes=1)
    signed = desk.rows(KeyRow, KeyRow.id == desk.vault["signers"][0]["key_id"])[0].last_signed_at
    assert desk.approve("alice", second)["status"] == "SIGNED"
    assert desk.rows(KeyRow, KeyRow.id == desk.vault["signers"][0]["key_id"])[0].last_signed_at == signed


def awaited(desk, psbt_id):
    """Whose approval is waited for, as the record has it: as who asks for themselves finds it."""
    named = {each for one in desk.proposal(psbt_id)["waits_for"] for each in one["user_ids"]}
    awaiting = {
        name
        for name, person in desk.signers.items()
        for each in ok(person.get("/api/v1/psbt", workspace_id=desk.workspace_id, awaiting="me"))
        if each["psbt_id"] == psbt_id
    }
    shown = {name for name in desk.signers if str(desk.user_ids[name]) in named}
    assert shown <= awaiting
    return shown


@example(steps=[("alice", False), ("bob", False), ("bob", True), ("carol", True), ("bob", False)])
@given(steps=st.lists(st.tuples(st.sampled_from(SIGNERS), st.booleans()), min_size=3, max_size=8))
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whoever_holds_the_role_and_may_approve_completes_it_whatever_roles_they_had(desk, finance, steps):
    """``steps``: who gets the other of two roles (true), or approves. As long as the vault's rule holds that
    a signer can give it, somebody is waited for who can.
    """
    ok(asks_for(desk, finance))
    other = {name: int(finance[5:]) if name == "carol" else SIGNER_ROLE for name in SIGNERS}
    current = {SIGNER_ROLE: int(finance[5:]), int(finance[5:]): SIGNER_ROLE}
    desk.deposit(20_000)
    psbt_id, given_in = made(desk.propose(5_000)), dict[str, int]()
    for name, changes in steps:
        if changes:
            response = change_role(desk.admin, desk.user_ids[name], current[other[name]])
            holders = [each for each in SIGNERS if other[each] == int(finance[5:])]
            assert response.status_code == (409 if holders == [name] else 200)
            other[name] = current[other[name]] if response.status_code == 200 else other[name]
        else:
            desk.submit(name, psbt_id, desk.signed(name, psbt_id))
            if given_in.get(name) != int(finance[5:]):
                given_in[name] = other[name]
        is_met = len(given_in) >= desk.vault["m"] and int(finance[5:]) in given_in.values()
        assert was_sent(desk, psbt_id) == is_met
        if is_met:
            break
        if int(finance[5:]) not in given_in.values():
            holders = {each for each in SIGNERS if other[each] == int(finance[5:])}
            assert awaited(desk, psbt_id) == holders
    else:
        ok(cancel(desk, psbt_id))
    ok(change_role(desk.admin, desk.user_ids["carol"], int(finance[5:])))
    for name in ("alice", "bob"):
        ok(change_role(desk.admin, desk.user_ids[name], SIGNER_ROLE))
    desk.mine()
    desk.later(minutes=1)


def test_a_maker_who_may_not_approve_is_not_waited_for(desk, finance):
    grant(desk, "Finance", "MANAGE_WORKSPACE")
    desk.limit_role("1", role_id=int(finance[5:]))
    ok(asks_for(desk, finance))
    pays = {"tx_type": "send", "recipients": [SHOP], "amounts_sats": [20_000]}
    psbt_id = made(desk.tell("create-psbt", "carol", wallet_id=desk.vault["id"], **pays))
    assert awaited(desk, psbt_id) == {"carol"}
    ok(asks_for(desk, finance, maker_may_approve=False))
    assert waits_for(desk, psbt_id) == [("Finance", [])]
    ok(asks_for(desk, finance))
    version = made(bump(desk, psbt_id, fee_rate="9"))
    assert awaited(desk, version) == {"carol"}
    ok(asks_for(desk, finance, maker_may_approve=False))
    assert waits_for(desk, version) == [("Finance", [])]


def test_a_payment_goes_on_once_the_controls_ask_for_no_more(desk, finance):
    """Whatever happened to it meanwhile: it is not sent where it was replaced, nor to an address that is in
    the book no more, and only once.
    """
    ok(asks_for(desk, finance))
    first, replaced, elsewhere = (made(desk.propose(20_000, recipients=[to])) for to in (SHOP, SHOP, CAFE))
    for psbt_id in (first, replaced, elsewhere):
        desk.sign_off(psbt_id)
    newer = made(bump(desk, replaced, fee_rate="40"))
    desk.enter("Shop", SHOP)
    ok(asks_for(desk, only_address_book=True))
    assert was_sent(desk, first)
    assert not was_sent(desk, replaced)
    assert status(desk, newer, elsewhere) == ["PENDING", "PENDING"]
    desk.enter("Cafe", CAFE)
    desk.world.clock.advance(minutes=2)
    assert was_sent(desk, elsewhere)
    assert desk.audited().count("PROPOSAL_FINALISED") == 2


@pytest.mark.parametrize("named_first", [True, False])
def test_p111_who_is_named_when_it_is_sent_has_to_approve_it_whoever_was_when_it_was_signed(
    desk, finance, named_first
):
    if named_first:
        ok(asks_for(desk, finance))
    psbt_id = made(desk.propose(20_000))
    desk.sign_off(psbt_id)
    desk.freeze()
    ok(asks_for(desk))
    desk.settle()
    assert status(desk, psbt_id) == ["STALLED"]
    ok(asks_for(desk, finance))
    desk.unfreeze()
    assert not was_sent(desk, psbt_id)
    assert (status(desk, psbt_id), awaited(desk, psbt_id)) == (["PENDING"], {"carol"})
    desk.approve("carol", psbt_id)
    assert was_sent(desk, psbt_id)


def test_what_waits_for_an_approval_anew_after_it_would_have_expired_ends_at_once(desk, finance):
    psbt_id = made(desk.propose(20_000))
    desk.sign_off(psbt_id)
    desk.freeze()
    desk.later(days=14)
    ok(asks_for(desk, finance))
    desk.unfreeze()
    assert not was_sent(desk, psbt_id)
    record = desk.proposal(psbt_id)
    assert (record["status"], record["waits_for"]) == ("EXPIRED", [])
    assert "It would have expired meanwhile." in record["failure_reason"]
    assert (desk.rows(CoinLockRow), desk.audited().count("PROPOSAL_EXPIRED")) == ([], 1)


def test_p111_versions_and_what_takes_them_back_wait_alike(desk, finance):
    ok(asks_for(desk, user(desk, "carol")))
    first = made(desk.propose(20_000, fee_rate="2"))
    desk.sign_off(first)
    second = made(bump(desk, first, fee_rate="9"))
    back = made(take_back(desk, second, fee_rate="30"))
    desk.sign_off(back)
    assert [was_sent(desk, each) for each in (first, second, back)] == [False] * 3
    desk.approve("carol", back)
    assert was_sent(desk, back)


def test_a_decline_by_the_last_who_could_give_it_ends_the_payment_and_by_one_who_could_not_does_not(
    desk, finance
):
    ok(asks_for(desk, finance))
    first, second, third = (made(desk.propose(20_000)) for _ in range(3))
    ok(desk.decline("alice", first))
    assert status(desk, first) == ["PENDING"]
    for name in ("alice", "bob"):
        desk.approve(name, second)
    desk.sign_off(second)
    told = ok(desk.decline("carol", second))["detail"]
    assert status(desk, second) == ["REJECTED"]
    assert told.endswith("Its coins stay locked until cancel-psbt with release_coins frees them.")
    # Two of three have signed: either can send it, and its coins pay for nothing else before that is settled.
    refused(desk.propose(330_000), 409, "LOCKED_FUNDS")
    back = made(take_back(desk, second))
    desk.approve("alice", back), desk.approve("carol", back)
    desk.settle(), desk.mine()
    assert status(desk, second, back) == ["REJECTED", "CONFIRMED"]
    refused(cancel(desk, second), 409, "STATE_CONFLICT")
    desk.sign_off(third)
    key = {"key_id": desk.vault["signers"][2]["key_id"], "reason": "lost", "force": True}
    ok(desk.signers["carol"].post("/api/v1/revoke-key", key))
    ok(desk.decline("carol", third))
    assert (status(desk, third), waits_for(desk, third)) == (["PENDING"], [("Finance", [])])
    ok(asks_for(desk))
    assert was_sent(desk, third)


@pytest.mark.parametrize(
    "loses",
    ["a role", "a key", "the workspace", "the right to approve", "a rule on makers", "a rule on approvers"],
)
def test_that_what_was_declined_cannot_be_approved_any_more_is_said_and_ends_it(desk, finance, loses):
    """Carol, who declines it, and Bob can give what is asked for, and Bob loses that."""
    ok(change_role(desk.admin, desk.user_ids["bob"], int(finance[5:])))
    ok(asks_for(desk, finance))
    grant(desk, "Finance", "MANAGE_WORKSPACE")
    desk.limit_role("1", role_id=int(finance[5:]))
    pays = {"tx_type": "send", "recipients": [SHOP], "amounts_sats": [20_000]}
    psbt_id = made(desk.tell("create-psbt", "bob", wallet_id=desk.vault["id"], **pays))
    desk.approve("alice", psbt_id)

    reader = add_role(desk.world, "Reader", ())

    def is_out(**force):
        match loses:
            case "a role":
                return change_role(desk.admin, desk.user_ids["bob"], SIGNER_ROLE, **force)
            case "a key":
                key = {"key_id": desk.vault["signers"][1]["key_id"], "reason": "lost"}
                return desk.signers["bob"].post("/api/v1/revoke-key", key | force)
            case "the workspace":
                return desk.tell("remove-user-from-workspace", user_uuid=desk.user_ids["bob"], **force)
            case "the right to approve":
                return change_role(desk.admin, desk.user_ids["bob"], reader, **force)
            case "a rule on makers":
                return asks_for(desk, finance, maker_may_approve=False)
            case _:
                return asks_for(desk, finance, user(desk, "carol"))

    ok(desk.decline("carol", psbt_id))
    desk.settle()
    assert status(desk, psbt_id) == ["PENDING"]
    if "rule" not in loses:
        told = refused(is_out(), 409, "STATE_CONFLICT")["detail"]
        assert "vault 'Treasury', or for a payment that waits there after a decline. Cancel that" in told
    ok(is_out(force=True))
    desk.settle()
    assert status(desk, psbt_id) == ["REJECTED"]


def test_what_nobody_can_give_is_not_asked_for(desk, finance):
    """Nobody with a key of the vault, somebody of another workspace, three at once, one twice."""
    empty = add_role(desk.world, "Operations", {APPROVE})
    dora = add_someone(desk.world, "Dora", {APPROVE})
    told = refused(asks_for(desk, f"role:{empty}"), 409, "STATE_CONFLICT")
    assert told["detail"].startswith("The vault Treasury asks for an approval from the role Operations, and")
    refused(asks_for(desk, f"user:{dora.user_id}"), 409, "STATE_CONFLICT")
    # Carol, alone of her role, is one person.
    refused(asks_for(desk, finance, user(desk, "carol")), 409, "STATE_CONFLICT")
    other = neighbour_of(desk)
    theirs = add_role(desk.world, "Finance", {APPROVE}, other.workspace_id)
    refused(asks_for(desk, f"role:{theirs}"), 404, "NOT_FOUND")
    refused(asks_for(desk, user(other, "alice")), 422, "VALIDATION")
    for wrong in ((finance, f"role:{SIGNER_ROLE}", user(desk, "alice")), (finance, finance), ("role:0",)):
        refused(asks_for(desk, *wrong), 422, "VALIDATION")
    assert controls(desk)["named_approvers"] == []


def test_what_becomes_impossible_is_said_and_payments_are_refused(desk, finance):
    carol = desk.user_ids["carol"]
    ok(asks_for(desk, finance))
    told = refused(change_role(desk.admin, carol, SIGNER_ROLE), 409, "STATE_CONFLICT")
    assert "none of those whose approval it needs, would be left in vault 'Treasury'" in told["detail"]
    key = {"key_id": desk.vault["signers"][2]["key_id"], "reason": "superseded"}
    refused(desk.signers["carol"].post("/api/v1/revoke-key", key), 409, "STATE_CONFLICT")
    refused(desk.tell("remove-user-from-workspace", user_uuid=carol), 409, "STATE_CONFLICT")
    ok(change_role(desk.admin, carol, SIGNER_ROLE, force=True))
    refused(desk.tell("delete-role", role_id=int(finance[5:])), 409, "STATE_CONFLICT")
    (vault,) = desk.wallets()
    (name,) = ok(desk.admin.get("/api/v1/vault-names", workspace_id=desk.workspace_id))
    assert [(each["lacks_signers"], each["lacks_approver"]) for each in (vault, name)] == [(False, True)] * 2
    told = refused(desk.propose(20_000), 409, "STATE_CONFLICT")
    assert "asks for an approval from the role Finance" in told["detail"]
    ok(asks_for(desk))
    ok(desk.propose(20_000))
    ok(desk.tell("delete-role", role_id=int(finance[5:])))


def test_only_the_device_of_the_last_who_could_approve_is_not_replaced_without_force(desk, finance):
    ok(asks_for(desk, finance))
    for number, name in enumerate(("alice", "bob"), 70):
        # Two are needed, and one is left: that asks for no force.
        ok(register_key(desk.signers[name], seed(number), replace=True))
    carol = desk.signers["carol"]
    told = refused(register_key(carol, seed(72), replace=True), 409, "STATE_CONFLICT")["detail"]
    assert "none of those whose approval it needs, would be left in vault 'Treasury'" in told
    assert told.endswith("or revoke the former key with force, then register.")
    key = {"key_id": desk.vault["signers"][2]["key_id"], "reason": "superseded"}
    ok(carol.post("/api/v1/revoke-key", key | {"force": True}))
    ok(register_key(carol, seed(72)))


def test_the_second_person_reads_names_and_no_less_is_asked_without_cooling_off(desk, finance):
    dora = ruled(desk.world, desk.admin, hours=1)
    bounds = {"vault_id": desk.vault["id"], "only_address_book": False, "maker_may_approve": True}
    both = [finance, user(desk, "alice")]
    more = ok(ask(desk.admin, "update-vault-controls", **bounds, approvers=both))
    words = more["names"]["approvers"], more["in_force"]["approvers"]
    assert words == ("the role Finance; alice@example.org", "none")
    ok(decide(dora, more))
    less = ok(ask(desk.admin, "update-vault-controls", **bounds, approvers=[finance]))
    refused(decide(dora, less), 409, "STATE_CONFLICT")
    # Left out, they stay, and the second person reads that.
    same = ok(ask(desk.admin, "update-vault-controls", **bounds | {"only_address_book": True}))
    assert (same["body"]["approvers"], same["in_force"]["approvers"]) == (both, words[0])
    ok(decide(dora, same))
    assert [each["key"] for each in controls(desk)["named_approvers"]] == both


def test_a_vault_in_its_place_asks_for_the_same(desk, finance):
    ok(asks_for(desk, finance))
    dora = ruled(desk.world, desk.admin)
    others = {"vault_id": desk.vault["id"], "name": "Second", "m": 1, "signers": [desk.user_ids["alice"]]}
    refused(ask(desk.admin, "replace-vault", **others), 409, "STATE_CONFLICT")
    ok(decide(dora, ok(ask(desk.admin, "replace-vault", vault_id=desk.vault["id"], name="Second"))))
    desk.vault = desk.wallets()[1]
    assert [each["name"] for each in controls(desk)["named_approvers"]] == ["Finance"]
