"""Registering a device through HTTP, with the signatures that a device makes."""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from random import Random

import pytest
from sqlalchemy import select, update

from custody.schemas.keys import ChallengeLine, offered_digest
from custody.server.store.models import KeyAccountRow
from device_simulators.seed import Seed
from multisig import Network, multisig_account_path
from tests.support.custody import ok
from tests.support.examples import RUN, examples
from tests.support.platform import As, World, key_offer, plain_vault, register_key, seed, sign_challenge

ALICE = "alice@example.org"


def challenge_for(user: As, offer: dict) -> dict:
    return ok(user.post("/api/v1/key-challenge", offer))


def refused(answer, pointer: str) -> bool:
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "VALIDATION"
    return pointer in {"", *(error["pointer"] for error in answer.json()["errors"])}


def altered(offer: dict, foreign: dict, device: Seed, count: int) -> Iterator[dict]:
    """What is offered, with one key that another device has in its place, one less or one more."""
    accounts, more = offer["vault_accounts"], key_offer(device, accounts=count + 1)["vault_accounts"][count:]
    for nth in range(count):
        for inserted in (foreign["vault_accounts"][nth : nth + 1], [])[: 2 if nth else 1]:
            yield offer | {"vault_accounts": [*accounts[:nth], *inserted, *accounts[nth + 1 :]]}
    yield offer | {"vault_accounts": accounts + more}
    yield offer | {"xpub": foreign["xpub"], "vault_accounts": accounts[1:]}
    yield offer | {"profile": foreign["profile"]}
    yield offer | {"profile": None}


def other_proofs(proof: dict, challenge: dict, device: Seed, other: Seed, chance: Random) -> Iterator[dict]:
    """Of another device, at another path, one bit or one letter of it changed, and none."""
    yield sign_challenge(other, challenge)
    yield sign_challenge(device, challenge | {"derivation_path": "m/48h/1h/0h/2h"})
    raw = bytearray(b64decode(proof["signature"]))
    raw[chance.randrange(1, len(raw))] ^= 1 << chance.randrange(8)
    yield proof | {"signature": b64encode(raw).decode()}
    yield from (proof | {"signature": text} for text in ("A" * 88, "!" * 88, "/" * 87 + "="))
    nth = chance.randrange(len(proof["challenge"]))
    text = proof["challenge"][:nth] + "~" + proof["challenge"][nth + 1 :]
    yield sign_challenge(device, challenge | {"challenge": text})


class TestChallenge:
    def test_says_what_it_is_for_and_a_bounded_number_is_open(self, world: World, alice: As) -> None:
        """No two are the same."""
        offer = key_offer(seed(1))
        texts = {challenge_for(alice, offer)["challenge"] for _ in range(20)}
        assert len(texts) == 20
        line = ChallengeLine.parse(texts.pop())
        pairs = {
            "m/48h/1h/0h/2h": offer["xpub"],
            "m/48h/1h/1h/2h": offer["vault_accounts"][1]["xpub"],
            "m/84h/1h/0h": offer["profile"]["xpub"],
        }
        assert (line.host, line.network, line.user_id) == ("localhost", "testnet", 1)
        assert line.keys_digest == offered_digest(pairs.items())
        assert alice.post("/api/v1/key-challenge", offer).status_code == 429
        world.clock.advance(minutes=10)
        challenge_for(alice, offer)


class TestRegister:
    def test_answers_with_the_specifications_key(self, alice: As) -> None:
        device = seed(1)
        said = {"maker": "trezor", "model": "Trezor Model T", "firmware": "2.8.1"}
        key = ok(register_key(alice, device, label="The blue one", device=said))
        base = multisig_account_path(Network.REGTEST)
        assert key["PubKeyHex"]["String"] == device.public_key(base).hex()
        assert key["Xpub"]["String"] == str(device.xpub(base, Network.REGTEST))
        assert (key["Label"]["String"], key["Device"]) == ("The blue one", said)
        assert (key["FreeVaultAccounts"], key["NextVaultAccount"]) == (2, 2)
        assert ok(alice.get("/api/v1/keys")) == [key]

    @pytest.mark.parametrize("header", [27, 31, 35, 39])
    def test_takes_every_makers_header_byte(self, alice: As, header: int) -> None:
        device, offer = seed(1), key_offer(seed(1))
        challenge = challenge_for(alice, offer)
        proof = sign_challenge(device, challenge)
        raw = b64decode(proof["signature"])
        proof["signature"] = b64encode(bytes([header + (raw[0] - 27) % 4]) + raw[1:]).decode()
        assert alice.post("/api/v1/register-key", {**offer, "proof": proof}).status_code == 200

    def test_s36_the_proof_is_of_one_persons_challenge_for_exactly_the_keys_that_are_offered(
        self, world: World, alice: As, bob: As
    ) -> None:
        """Nothing is registered where any one thing differs; then the same is, once."""
        chance, path = Random(RUN), "/api/v1/register-key"
        assert refused(alice.post(path, key_offer(seed(1))), "/proof")
        for number in range(1, examples(12) + 1):
            device, other, count = seed(number), seed(number + 100), chance.randint(1, 4)
            offer, foreign = (key_offer(each, accounts=count) for each in (device, other))
            late = sign_challenge(device, challenge_for(alice, offer))
            world.clock.advance(minutes=10)
            challenge = challenge_for(alice, offer)
            proof, known = sign_challenge(device, challenge), ok(alice.get("/api/v1/keys"))
            for changed in altered(offer, foreign, device, count):
                assert refused(alice.post(path, {**changed, "replace": True, "proof": proof}), ""), changed
            for person, given in ((alice, late), (bob, proof)):
                assert refused(person.post(path, {**offer, "proof": given}), "/proof/challenge")
            for given in other_proofs(proof, challenge, device, other, chance):
                assert refused(alice.post(path, {**offer, "proof": given}), ""), given
            assert (ok(alice.get("/api/v1/keys")), ok(bob.get("/api/v1/keys"))) == (known, [])
            ok(alice.post(path, {**offer, "replace": True, "proof": proof}))
            assert refused(alice.post(path, {**offer, "proof": proof}), "/proof/challenge")
            # Sessions last for ten minutes, and the calls of one for a minute are bounded.
            alice, bob = (world.as_user(f"{name}@example.org") for name in ("alice", "bob"))

    def test_a_key_of_another_network(self, alice: As) -> None:
        offer = {**key_offer(seed(1), Network.MAINNET), "network": "testnet"}
        offer["derivation_base_path"] = "m/48h/1h/0h/2h"
        answer = alice.post("/api/v1/key-challenge", offer)
        assert refused(answer, "/xpub")
        assert answer.json()["errors"][0]["code"] == "wrong-network"

    def test_an_offer_that_is_wrong_names_its_field(self, alice: As) -> None:
        own, path = key_offer(seed(1)), "/derivation_base_path"
        for changes, pointer in (
            ({"derivation_base_path": "m/48h/0h/0h/2h"}, path),
            ({"derivation_base_path": "m/48h/1h/1h/2h"}, path),
            ({"derivation_base_path": "m/84h/1h/0h"}, path),
            ({"derivation_base_path": "m/48h/1h/0h/99999999999h"}, path),
            ({"master_fingerprint": "00000000"}, "/master_fingerprint"),
            ({"master_fingerprint": "0000000g"}, "/master_fingerprint"),
            ({"xpub": "x" * 111}, "/xpub"),
            ({"xpub": own["profile"]["xpub"]}, "/xpub"),
            ({"vault_accounts": [{"account": 0, "xpub": key_offer(seed(2))["xpub"]}]}, "/vault_accounts"),
            ({"vault_accounts": [{"account": 1, "xpub": own["xpub"]}]}, "/vault_accounts"),
            ({"vault_accounts": [{"account": 101, "xpub": own["xpub"]}]}, "/vault_accounts/0/account"),
            ({"profile": {**own["profile"], "derivation_base_path": "m/84h/1h/1h"}}, f"/profile{path}"),
            ({"profile": {**own["profile"], "xpub": own["xpub"]}}, "/profile/xpub"),
            ({"network": "regtest"}, "/network"),
            ({"unknown": 1}, "/unknown"),
        ):
            assert refused(alice.post("/api/v1/key-challenge", {**own, **changes}), pointer), changes


class TestOneActiveKey:
    def test_a_second_device_is_refused_or_replaces_the_first_when_asked(self, alice: As) -> None:
        first = ok(register_key(alice, seed(1)))
        second = register_key(alice, seed(2))
        assert (second.status_code, second.json()["code"]) == (409, "KEY_ALREADY_ACTIVE")
        second = ok(register_key(alice, seed(2), replace=True))
        listed = {key["ID"]: key["Status"] for key in alice.get("/api/v1/keys").json()}
        assert listed == {first["ID"]: "revoked", second["ID"]: "active"}

    def test_the_same_device_again_is_the_same_key_with_more_accounts(self, world: World, alice: As) -> None:
        first = register_key(alice, seed(1)).json()
        more = key_offer(seed(1), accounts=5)["vault_accounts"]
        again = register_key(alice, seed(1), vault_accounts=more)
        assert again.status_code == 200
        assert again.json()["ID"] == first["ID"]
        with world.platform.services.store.read() as db:
            assert sorted(db.scalars(select(KeyAccountRow.account))) == [0, 1, 2, 3, 4]

    def test_an_account_is_one_devices_and_one_persons(self, alice: As, bob: As) -> None:
        """The proof covers account 0; who slips in a cosigner's account would hold two places of a vault
        in name.
        """
        register_key(alice, seed(1))
        foreign = key_offer(seed(2))["vault_accounts"][1:]
        assert refused(register_key(alice, seed(1), vault_accounts=foreign), "/vault_accounts")
        assert register_key(bob, seed(1)).status_code == 409
        stolen = [row for row in key_offer(seed(1))["vault_accounts"] if row["account"] == 1]
        assert register_key(bob, seed(2), vault_accounts=stolen).status_code == 409

    def test_an_account_that_a_vault_took_is_not_free_again(self, world: World, alice: As) -> None:
        """No two vaults share a key, though a device is registered anew."""
        register_key(alice, seed(1))
        with world.platform.services.store.write() as db:
            db.add(plain_vault("v1"))
            db.flush()
            db.execute(update(KeyAccountRow).where(KeyAccountRow.account == 0).values(vault_id="v1"))
        register_key(alice, seed(2), replace=True)
        back = register_key(alice, seed(1), replace=True).json()
        with world.platform.services.store.read() as db:
            mine = select(KeyAccountRow.account).where(KeyAccountRow.key_id == back["ID"])
            assert list(db.scalars(mine)) == [1]


def test_no_address_is_given_of_a_revoked_profile_or_without_one(alice: As) -> None:
    register_key(alice, seed(1))
    ok(alice.get("/api/v1/signing-profile-address", network="testnet"))
    register_key(alice, seed(2), replace=True, profile=None)
    assert alice.get("/api/v1/signing-profile-address", network="testnet").status_code == 404
