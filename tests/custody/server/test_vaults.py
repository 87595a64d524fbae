"""Vaults: what they are made of, which signers they take, and what they export.

No two vaults share an account, however often a device is registered (BIP-48, BIP-388). An export is read back
as that very vault: by the project's own reader, and by bdk.
"""

import tempfile
from itertools import combinations
from pathlib import Path

import bdkpython
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from custody.server.errors import Invalid, NotFound
from custody.server.store.models import VaultRow as StoredVault
from custody.server.store.models import WatchedScriptRow
from custody.server.vaults.calls import rescan
from custody.server.vaults.stored import watch_branch
from multisig import MAX_INDEX, RECEIVE, Network, Vault, multisig_account_path, read_vault_file
from tests.support.custody import SIGNERS, Desk, ok, open_desk, refused
from tests.support.examples import examples
from tests.support.platform import register_key, seed


def test_s27_whoever_makes_a_vault_that_two_separate_groups_can_spend_from_is_warned(desk):
    (told,) = ok(desk.create_vault("Weak", m=1))["warnings"]
    assert told.startswith(
        "Each of the 3 can pay alone, without the others' knowing: one invoice can be paid twice."
    )
    assert "With 2 of 3 every two payments share a signer." in told
    assert not any("warnings" in vault for vault in desk.wallets())


def test_a_signers_key_says_whether_it_still_approves(desk):
    alice = desk.signers["alice"]
    key_id = desk.wallets()[0]["signers"][0]["key_id"]
    states = []
    for reason in ("superseded", "lost"):
        states.append(desk.wallets()[0]["signers"][0]["key_state"])
        ok(alice.post("/api/v1/revoke-key", {"key_id": key_id, "reason": reason}))
    states.append(desk.wallets()[0]["signers"][0]["key_state"])
    assert states == ["active", "superseded", "lost"]


def test_when_every_account_is_taken_it_says_whose(desk):
    ok(desk.create_vault("Second"))
    problem = refused(desk.create_vault("Third"), 409, "KEY_ACCOUNTS_EXHAUSTED")
    assert problem["errors"][0]["pointer"] == "/signers/0"
    assert "alice@example.org" in problem["detail"]
    for name in SIGNERS:
        xpub = desk.devices[name].xpub(multisig_account_path(Network.REGTEST, 2), Network.REGTEST)
        more = [{"account": 2, "xpub": str(xpub)}]
        ok(register_key(desk.signers[name], desk.devices[name], vault_accounts=more))
    ok(desk.create_vault("Third"))


def test_requests_that_make_no_sense_take_no_account(desk):
    rival = desk.world.organisation("Rival", "rival@example.org")
    ok(register_key(desk.world.as_user("rival@example.org"), seed(8)))
    for changes in (
        {"network": "mainnet"},
        {"m": 4},
        {"m": 0},
        {"signers": []},
        {"signers": [1, 1]},
        {"signers": [*desk.user_ids.values(), 999]},
        {"signers": [rival.user_id]},
        {"transaction_limit": "21000000.00000001"},
    ):
        refused(desk.create_vault("Other", **changes), 422, "VALIDATION")
    # A signer needs an active key.
    keyless = desk.world.member(desk.workspace_id, "dave@example.org").user_id
    answer = desk.create_vault("Other", signers=[desk.user_ids["alice"], keyless])
    assert refused(answer, 422, "VALIDATION")["errors"][0]["pointer"] == "/signers/1"
    for name in ("Treasury", "TREASURY", "treasury ", "\uff34reasury"):
        refused(desk.create_vault(name), 409, "STATE_CONFLICT")
    assert len(desk.wallets()) == 1
    second = Vault.from_descriptor(ok(desk.create_vault("Second"))["descriptor"], Network.REGTEST)
    assert [str(key.origin.path) for key in second.cosigners] == ["m/48h/1h/1h/2h"] * 3


class TestDeposits:
    def test_a_deposit_at_the_edge_of_the_gap_moves_the_gap(self, desk):
        """What was paid beyond it is found then, even in older blocks."""
        policy = desk.policy
        desk.deposit(4_000, to=policy.address(0, 25))
        assert desk.wallets()[0]["confirmed_sats"] == 0
        desk.deposit(1_000, to=policy.address(0, 19))
        assert desk.wallets()[0]["confirmed_sats"] == 5_000
        desk.deposit(2_000, to=policy.address(0, 45))
        (vault,) = desk.wallets()
        assert vault["confirmed_sats"] == 7_000
        assert vault["receive_address"] == policy.address(0, 46)

    def test_a_reorganisation_deeper_than_what_is_remembered(self, funded, monkeypatch):
        monkeypatch.setattr("custody.server.network.deposits.KEPT_BLOCKS", 2)
        monkeypatch.setattr("custody.server.network.watcher.KEPT_BLOCKS", 2)
        funded.mine()
        funded.reorganise(8, 9)
        (vault,) = funded.wallets()
        assert (vault["confirmed_sats"], vault["unconfirmed_sats"]) == (0, 700_000)
        funded.mine()
        assert funded.wallets()[0]["confirmed_sats"] == 700_000


PATH = "/api/v1/vault-export"


def export(desk: Desk, user=None, **query: object):
    known = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    return (user or desk.admin).get(PATH, **known, **query)


def test_what_is_exported_is_read_back_as_the_same_vault(desk: Desk) -> None:
    for form in ("descriptor", "bsms"):
        shown = ok(export(desk, format=form))
        assert (shown["format"], shown["name"]) == (form, "Treasury")
        vault = read_vault_file(shown["text"], Network.REGTEST).vault
        assert vault == desk.policy
        assert [key.fingerprint for key in vault.cosigners] == [
            desk.devices[one].fingerprint for one in SIGNERS
        ]
        assert vault.witness_script(0, 0).hex() == desk.vault["witness_script_hex"]
        assert shown["verification_code"] == vault.verification_code
    refused(export(desk, format="paper"), 422, "VALIDATION")
    # The descriptor comes without being asked for by name, and bdk finds the same first address.
    text = ok(export(desk))["text"]
    assert text == desk.vault["descriptor"]
    receive, _ = bdkpython.Descriptor(text, bdkpython.NetworkKind.TEST).to_single_descriptors()
    assert str(receive.derive_address(0, bdkpython.Network.REGTEST)) == desk.vault["address"]
    # The record of BIP-129 names it.
    version, template, paths, address = ok(export(desk, format="bsms"))["text"].split("\n")
    assert (version, paths, address) == ("BSMS 1.0", "/0/*,/1/*", desk.vault["address"])
    assert template.startswith("wsh(sortedmulti(2,[")
    assert template.count("/**") == 3
    # A wallet policy: the template of BIP-388, and a key on each line.
    template, *keys = ok(export(desk, format="policy"))["text"].split("\n")
    assert template == "wsh(sortedmulti(2,@0/**,@1/**,@2/**))"
    assert {key[1:9] for key in keys} == {str(key.fingerprint) for key in desk.policy.cosigners}


SUBSETS = [list(some) for size in (1, 2, 3) for some in combinations(SIGNERS, size)]
# A vault of some of them; a device in the place of another one; the same device once more after it was lost,
# which is refused.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("vault"), st.sampled_from(SUBSETS)),
        st.tuples(st.just("replace"), st.tuples(st.sampled_from(SIGNERS), st.integers(1, 5))),
        st.tuples(st.just("again"), st.sampled_from(SIGNERS)),
    ),
    min_size=1,
    max_size=8,
)


def take(desk: Desk, number: int, what: str, who) -> None:
    match what:
        case "vault":
            signers = [desk.user_ids[name] for name in who]
            answer = desk.create_vault(f"Vault {number}", m=1, signers=signers)
            if answer.status_code == 422:
                assert "has no active key" in answer.text
            elif answer.status_code != 200:
                refused(answer, 409, "KEY_ACCOUNTS_EXHAUSTED")
        case "replace":
            name, device = who
            # Refused where the device is another member's.
            answer = register_key(desk.signers[name], seed(device), replace=True)
            assert answer.status_code in {200, 409}, answer.text
        case "again":
            user = desk.signers[who]
            for key in user.get("/api/v1/keys").json():
                user.post("/api/v1/revoke-key", {"key_id": key["ID"], "reason": "lost", "force": True})
            assert register_key(user, desk.devices[who]).status_code == 409


@settings(max_examples=examples(12))
@given(steps)
def test_no_two_vaults_share_a_key_or_an_address(taken: list) -> None:
    with tempfile.TemporaryDirectory() as folder, open_desk(Path(folder) / "state") as desk:
        for number, (what, who) in enumerate(taken):
            take(desk, number, what, who)
            desk.world.clock.advance(seconds=10)
        vaults = [Vault.from_descriptor(each["descriptor"], Network.REGTEST) for each in desk.wallets()]
    keys = [key.xpub.public_key for vault in vaults for key in vault.cosigners]
    assert len(set(keys)) == len(keys)
    assert len({vault.address(0, 0) for vault in vaults}) == len(vaults)


def test_a_deposit_beyond_the_gap_is_found_by_a_rescan(desk):
    """Each look of the watcher reads what is watched, so that the operator's word is enough."""
    desk.deposit(70_000, to=desk.policy.address(RECEIVE, 150))
    assert desk.wallets()[0]["confirmed_sats"] == 0
    desk.watcher.look()
    platform = desk.world.platform
    rescan(platform.services, desk.vault["id"], 151)
    desk.watcher.look()
    (vault,) = desk.wallets()
    assert vault["confirmed_sats"] == 70_000
    assert vault["receive_address"] == desk.policy.address(RECEIVE, 151)
    assert "VAULT_RESCANNED" in desk.audited()
    ok(desk.propose(50_000))
    # Of a vault that is there, and with a bound.
    with pytest.raises(NotFound, match="There is no vault"):
        rescan(platform.services, "0" * 32, 10)
    for addresses in (0, 10_001):
        with pytest.raises(Invalid, match="1 to 10000"):
            rescan(platform.services, desk.vault["id"], addresses)


def test_behind_the_last_address_there_is_none(desk):
    """It is given out again: the chain is followed, and the vault is told of."""
    store = desk.store
    with store.write() as db:
        vault = db.get_one(StoredVault, desk.vault["id"])
        script = desk.policy.script_pubkey(RECEIVE, MAX_INDEX - 1)
        watched = {"chain": vault.chain, "vault_id": vault.id, "branch": RECEIVE}
        db.add(WatchedScriptRow(**watched, address_index=MAX_INDEX - 1, script_pubkey=script))
        db.flush()
        watch_branch(db, vault, RECEIVE, MAX_INDEX)
    for index in (MAX_INDEX - 1, MAX_INDEX):
        desk.deposit(70_000, to=desk.policy.address(RECEIVE, index))
        assert desk.wallets()[0]["receive_address"] == desk.policy.address(RECEIVE, MAX_INDEX)
    assert desk.wallets()[0]["confirmed_sats"] == 140_000
