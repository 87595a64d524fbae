"""A wallet that holds the signer's own keys beside the vault is refused in words that say so;
a false claim is told as one.
"""

import pytest

from multisig import KeyOrigin, Profile, Psbt, Vault, hash160, inspect, p2pkh, p2sh, p2wpkh
from multisig.keys import DerivationPath
from tests.support.wallets import ALICE, BOB, MALLORY, foreign_script, make_spend, make_vault, with_output

VAULT = make_vault()
SPEND = make_spend(VAULT)
OUR_CHANGE = 1
# An account of the same device, as Core's wallet derives its change from it.
PATH = DerivationPath.parse("m/84h/1h/5h/1/3")
KEY = ALICE.private_node(PATH).public_key
ORIGINS = {KEY: KeyOrigin(ALICE.fingerprint, PATH)}
TOLD = "another wallet with the same keys"


def finding(psbt: Psbt, policy: Vault | Profile = VAULT):
    seen = inspect(psbt, policy, network=policy.network)
    assert not seen.ok
    (found,) = [f for f in seen.findings if f.code == "fake-change"]
    return found


def change(script: bytes, origins=ORIGINS, witness_script: bytes | None = None) -> Psbt:
    return with_output(
        SPEND, OUR_CHANGE, script_pubkey=script, witness_script=witness_script, derivations=origins
    )


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (p2wpkh(KEY), "a P2WPKH address"),
        (p2sh(hash160(p2wpkh(KEY))), "a P2SH-P2WPKH address"),
        (p2pkh(hash160(KEY)), "a P2PKH address"),
    ],
)
def test_change_to_the_signers_own_wallet_is_refused_as_what_it_is(script: bytes, kind: str) -> None:
    found = finding(change(script))
    assert TOLD in found.sentence
    assert f"{kind} of {ALICE.fingerprint}/84h/1h/5h/1/3" in found.sentence
    assert "a wallet of its own" in found.sentence
    assert "names keys of this vault's devices" not in found.sentence


def test_a_coin_of_the_signers_own_wallet_is_told_as_one() -> None:
    other = make_vault(account=1)
    seen = inspect(make_spend(other), VAULT, network=VAULT.network)
    told = {f.sentence for f in seen.findings if f.code == "input-not-ours"}
    assert told
    assert all(TOLD in sentence for sentence in told)


MALLORYS = MALLORY.private_node(PATH).public_key
IN_THE_ACCOUNT = next(iter(VAULT.derivations(1, 7).values()))


@pytest.mark.parametrize(
    ("script", "origins"),
    [
        # The script is not of the key.
        (foreign_script("mallory"), ORIGINS),
        (p2wpkh(MALLORYS), ORIGINS),
        # Two keys, and one script that is of one of them.
        (p2wpkh(KEY), {**ORIGINS, BOB.private_node(PATH).public_key: KeyOrigin(BOB.fingerprint, PATH)}),
        # A key of Mallory's, said to lie in the vault's own account, where another one lies.
        (p2wpkh(MALLORYS), {MALLORYS: IN_THE_ACCOUNT}),
        # The vault's own script under the origins of another address.
        (VAULT.script_pubkey(1, 7), dict(VAULT.derivations(1, 8))),
    ],
)
def test_s1_a_false_claim_is_told_as_one(script: bytes, origins: dict[bytes, KeyOrigin]) -> None:
    witness_script = VAULT.witness_script(1, 7) if script == VAULT.script_pubkey(1, 7) else None
    found = finding(change(script, origins, witness_script))
    assert found.sentence == "The output names keys of this vault's devices, and does not come back to it."
