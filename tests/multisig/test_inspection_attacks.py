"""The hostile corpus of the inspection: each is data, run the way a PSBT comes in,
with the finding it must get.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from coincurve import PrivateKey

from multisig import (
    CHANGE,
    HARDENED,
    DerivationPath,
    Inspection,
    InvalidPsbt,
    KeyOrigin,
    Network,
    OutPoint,
    Profile,
    Psbt,
    PsbtOutput,
    Severity,
    SighashCache,
    Transaction,
    TxOut,
    Vault,
    build_psbt,
    inspect,
    multisig_script,
    p2wsh,
    parse_multisig_script,
    sats,
)
from tests.support.wallets import (
    ALICE,
    BOB,
    CAROL,
    MALLORY,
    foreign_script,
    fund,
    make_spend,
    make_vault,
    pay,
    with_input,
    with_inputs,
    with_output,
    with_outputs,
)

VAULT = make_vault()
SPEND = make_spend(VAULT)
PAYMENT, OUR_CHANGE = 0, 1
MALLORYS = make_vault((MALLORY, BOB, CAROL))
ONE_OF_THREE = make_vault(threshold=1)
OTHER_ACCOUNT = make_vault(account=1)
MAINNET = make_vault(network=Network.MAINNET)


@dataclass(frozen=True)
class Attack:
    """A PSBT that must be refused: the number in the list of attacks, and the finding with its place."""

    number: str
    name: str
    psbt: Callable[[], Psbt]
    code: str
    subject: str = "transaction"

    def __str__(self) -> str:
        return f"{self.number} {self.name}"


def change(policy: Vault | Profile, chain: int = CHANGE, index: int = 7) -> dict:
    """All that a PSBT says about an output to this policy."""
    return {
        "script_pubkey": policy.script_pubkey(chain, index),
        "witness_script": policy.witness_script(chain, index) if isinstance(policy, Vault) else None,
        "derivations": policy.derivations(chain, index),
    }


def moved(origins: dict[bytes, KeyOrigin], *last: int) -> dict[bytes, KeyOrigin]:
    """The origins with the last levels of each path replaced."""
    return {
        key: KeyOrigin(origin.fingerprint, DerivationPath((*origin.path.indexes[: -len(last)], *last)))
        for key, origin in origins.items()
    }


def out(**fields) -> Psbt:
    return with_output(SPEND, OUR_CHANGE, **fields)


def claims_of_change() -> dict[bytes, KeyOrigin]:
    return dict(SPEND.outputs[OUR_CHANGE].derivations)


def without_one_origin() -> dict[bytes, KeyOrigin]:
    return dict(list(claims_of_change().items())[1:])


def data_output(script: bytes, amount: int = 0) -> Psbt:
    extra = PsbtOutput(amount=sats(amount), script_pubkey=script)
    return with_outputs(SPEND, *SPEND.outputs, extra)


def paying(script: bytes) -> Psbt:
    return with_output(SPEND, PAYMENT, script_pubkey=script)


def input_of(policy: Vault | Profile) -> Psbt:
    """Our spend with an input that another policy's own wallet would have prepared."""
    stranger = build_psbt(policy, [fund(policy, 100_000, index=3)], [pay(90_000)], 0)
    return with_inputs(SPEND, SPEND.inputs[0], stranger.inputs[0])


def claimed_input_of_mallory() -> Psbt:
    """Mallory's coin under our own origins."""
    psbt = input_of(MALLORY.profile())
    ours = SPEND.inputs[1]
    return with_input(psbt, 1, derivations=ours.derivations, witness_script=ours.witness_script)


def previous(change_amount: Callable[[int], int]) -> Transaction:
    tx = SPEND.inputs[0].non_witness_utxo
    assert tx is not None
    coin = tx.outputs[1]
    return replace(tx, outputs=(tx.outputs[0], TxOut(sats(change_amount(coin.amount)), coin.script_pubkey)))


def stated_coin(**fields) -> Psbt:
    coin = SPEND.inputs[0].witness_utxo
    assert coin is not None
    return with_input(SPEND, 0, witness_utxo=replace(coin, **fields))


def beyond_the_previous_outputs() -> Psbt:
    item = SPEND.inputs[0]
    return with_inputs(SPEND, replace(item, outpoint=OutPoint(item.outpoint.txid, 9)), SPEND.inputs[1])


def reversed_keys() -> bytes:
    threshold, keys = parse_multisig_script(SPEND.inputs[0].witness_script or b"")
    return multisig_script(threshold, keys[::-1])


def foreign_xpub() -> Psbt:
    """S15: Bob's account key is replaced by Mallory's, under Bob's name."""
    (_, (_, bob), _), mallory = SPEND.xpubs, MALLORY.vault_key().xpub
    return replace(SPEND, xpubs=(SPEND.xpubs[0], (mallory, bob), SPEND.xpubs[2]))


def repeated_fingerprint() -> Psbt:
    """S17: a second account key under a fingerprint that is there already."""
    other = ALICE.vault_key(account=1)
    return replace(SPEND, xpubs=(*SPEND.xpubs[:2], (other.xpub, other.origin)))


def spent_twice() -> Psbt:
    return with_inputs(SPEND, SPEND.inputs[0], SPEND.inputs[1], SPEND.inputs[0])


def other_sequences(sequence: int) -> Psbt:
    return with_inputs(SPEND, *(replace(item, sequence=sequence) for item in SPEND.inputs))


def strangers_signature() -> Psbt:
    """Mallory's own key signs the very digest that the vault's keys sign."""
    item = SPEND.inputs[0]
    assert item.witness_script is not None
    assert item.witness_utxo is not None
    digest = SighashCache(SPEND.tx).segwit_v0(0, item.witness_script, item.witness_utxo.amount)
    key = PrivateKey(MALLORY.private_node(()).key)
    return SPEND.with_signatures({0: {key.public_key.format(): key.sign(digest, hasher=None) + b"\x01"}})


def garbage_signature() -> Psbt:
    key = next(iter(SPEND.inputs[1].derivations))
    good = ALICE.sign(SPEND)
    return good.with_signatures({1: {key: bytes.fromhex("3006020101020101") + b"\x01"}})


ATTACKS = [
    Attack("S1", "change claims another index",
           lambda: out(derivations=moved(claims_of_change(), 1, 8)), "fake-change", "output 1"),
    Attack("S1", "change claims the other chain",
           lambda: out(derivations=moved(claims_of_change(), 0, 7)), "fake-change", "output 1"),
    Attack("S1", "change claims another account",
           lambda: out(derivations=OTHER_ACCOUNT.derivations(1, 7)), "fake-change", "output 1"),
    Attack("S1", "change claims a longer path",
           lambda: out(derivations=moved(claims_of_change(), 1, 7, 0)), "fake-change", "output 1"),
    Attack("S1", "change pays somebody else under our origins",
           lambda: out(script_pubkey=foreign_script("mallory")), "fake-change", "output 1"),
    Attack("S1", "change pays Mallory's quorum",
           lambda: out(script_pubkey=MALLORYS.script_pubkey(1, 7)), "fake-change", "output 1"),
    Attack("S1", "change pays the bare script instead of its hash",
           lambda: out(script_pubkey=b"\x00\x14" + p2wsh(VAULT.witness_script(1, 7))[2:22]),
           "fake-change", "output 1"),
    Attack("S1", "origins disagree on the index",
           lambda: out(derivations={**moved(claims_of_change(), 1, 8), **without_one_origin()}),
           "fake-change", "output 1"),
    Attack("S1", "change with Mallory's witness script",
           lambda: out(witness_script=MALLORYS.witness_script(1, 7)), "witness-script-mismatch", "output 1"),
    Attack("S1", "change without a witness script",
           lambda: out(witness_script=None), "witness-script-mismatch", "output 1"),
    Attack("S1", "change with a redeem script",
           lambda: out(redeem_script=b"\x51"), "witness-script-mismatch", "output 1"),
    Attack("S1", "change without one cosigner's origin",
           lambda: out(derivations=without_one_origin()), "origins-mismatch", "output 1"),
    Attack("S2", "change to one of the same three",
           lambda: out(**change(ONE_OF_THREE)), "fake-change", "output 1"),
    Attack("S2", "change to a quorum where Mallory replaces Alice",
           lambda: out(**change(MALLORYS)), "fake-change", "output 1"),
    Attack("S2", "change to two of only two",
           lambda: out(**change(make_vault((ALICE, BOB)))), "fake-change", "output 1"),
    Attack("S2", "change to the same people's other account",
           lambda: out(**change(OTHER_ACCOUNT)), "fake-change", "output 1"),
    Attack("S2", "change to one cosigner's own profile",
           lambda: out(**change(BOB.profile())), "fake-change", "output 1"),
    Attack("S3", "an input of another vault of the same people",
           lambda: input_of(OTHER_ACCOUNT), "input-not-ours", "input 1"),
    Attack("S3", "an input of a quorum with Mallory",
           lambda: input_of(MALLORYS), "input-not-ours", "input 1"),
    Attack("S3", "an input of the same keys, one of three",
           lambda: input_of(ONE_OF_THREE), "input-not-ours", "input 1"),
    Attack("S3", "an input of one cosigner's own profile",
           lambda: input_of(CAROL.profile()), "input-not-ours", "input 1"),
    Attack("S3", "an input of Mallory's under our origins",
           claimed_input_of_mallory, "input-not-ours", "input 1"),
    Attack("S3", "an input without origins",
           lambda: with_input(SPEND, 0, derivations={}), "input-not-ours", "input 0"),
    Attack("S3", "the same coin twice", spent_twice, "duplicate-input", "input 2"),
    Attack("S4", "an understated amount",
           lambda: stated_coin(amount=sats(1_000)), "amount-mismatch", "input 0"),
    Attack("S4", "an overstated amount",
           lambda: stated_coin(amount=sats(100_001)), "amount-mismatch", "input 0"),
    Attack("S5", "no previous transaction",
           lambda: with_input(SPEND, 0, non_witness_utxo=None), "previous-transaction-missing", "input 0"),
    Attack("S5", "a previous transaction with another amount",
           lambda: with_input(SPEND, 0, non_witness_utxo=previous(lambda a: a - 1)),
           "previous-transaction-mismatch", "input 0"),
    Attack("S5", "another coin's previous transaction",
           lambda: with_input(SPEND, 0, non_witness_utxo=SPEND.inputs[1].non_witness_utxo),
           "previous-transaction-mismatch", "input 0"),
    Attack("S5", "an output the previous transaction does not have",
           beyond_the_previous_outputs, "previous-transaction-mismatch", "input 0"),
    Attack("S5", "the coin stated with another script",
           lambda: stated_coin(script_pubkey=foreign_script()), "script-mismatch", "input 0"),
    Attack("S5", "the coin itself left out",
           lambda: with_input(SPEND, 0, witness_utxo=None), "witness-utxo-missing", "input 0"),
    Attack("S7", "a fee below zero", lambda: out(amount=sats(200_001)), "fee-negative"),
    Attack("S7", "a fee of most of the money", lambda: out(amount=sats(1_000)), "fee-above-limit"),
    Attack("S8", "sighash DEFAULT on segwit v0",
           lambda: with_input(SPEND, 1, sighash_type=0x00), "sighash-not-all", "input 1"),
    Attack("S8", "sighash NONE",
           lambda: with_input(SPEND, 1, sighash_type=0x02), "sighash-not-all", "input 1"),
    Attack("S8", "sighash SINGLE",
           lambda: with_input(SPEND, 1, sighash_type=0x03), "sighash-not-all", "input 1"),
    Attack("S8", "sighash ALL, ANYONECANPAY",
           lambda: with_input(SPEND, 1, sighash_type=0x81), "sighash-not-all", "input 1"),
    Attack("S8", "sighash of no meaning",
           lambda: with_input(SPEND, 1, sighash_type=0x101), "sighash-not-all", "input 1"),
    Attack("S9", "change far beyond any index",
           lambda: out(script_pubkey=MALLORYS.script_pubkey(1, 1),
                       derivations=moved(claims_of_change(), 1, 1_000_001)),
           "absurd-path", "output 1"),
    Attack("S9", "change at the last index there is",
           lambda: out(derivations=moved(claims_of_change(), 1, HARDENED - 1)), "absurd-path", "output 1"),
    Attack("S9", "change on a third chain",
           lambda: out(derivations=moved(claims_of_change(), 2, 7)), "absurd-path", "output 1"),
    Attack("S9", "change below a hardened level",
           lambda: out(derivations=moved(claims_of_change(), 1, 7 + HARDENED)), "fake-change", "output 1"),
    Attack("S9", "an input far beyond any index",
           lambda: with_input(SPEND, 0, derivations=moved(dict(SPEND.inputs[0].derivations), 0, 2_000_000)),
           "absurd-path", "input 0"),
    Attack("S10", "data behind the shown data",
           lambda: data_output(b"\x6a\x02hi\x06hidden"), "op-return-malformed", "output 2"),
    Attack("S10", "data in a longer push than needed",
           lambda: data_output(b"\x6a\x4c\x02hi"), "op-return-malformed", "output 2"),
    Attack("S10", "81 bytes of data",
           lambda: data_output(b"\x6a\x4c\x51" + b"x" * 81), "op-return-malformed", "output 2"),
    Attack("S10", "a push that ends early",
           lambda: data_output(b"\x6a\x05hi"), "op-return-malformed", "output 2"),
    Attack("S10", "OP_RETURN and nothing", lambda: data_output(b"\x6a"), "op-return-malformed", "output 2"),
    Attack("S10", "a number instead of a push",
           lambda: data_output(b"\x6a\x51"), "op-return-malformed", "output 2"),
    Attack("S10", "money in the data output",
           lambda: data_output(b"\x6a\x02hi", 546), "op-return-burns", "output 2"),
    Attack("S10", "two data outputs",
           lambda: with_outputs(data_output(b"\x6a\x02hi"), *data_output(b"\x6a\x02hi").outputs,
                                PsbtOutput(amount=sats(0), script_pubkey=b"\x6a\x02ho")),
           "op-return-multiple"),
    Attack("S10", "an empty script", lambda: paying(b""), "unknown-output-script", "output 0"),
    Attack("S10", "a script that anyone can spend",
           lambda: paying(b"\x51"), "unknown-output-script", "output 0"),
    Attack("S10", "a bare multisig script",
           lambda: paying(VAULT.witness_script(0, 0)), "unknown-output-script", "output 0"),
    Attack("S10", "a witness version without rules",
           lambda: paying(b"\x52\x20" + b"\x01" * 32), "unknown-output-script", "output 0"),
    Attack("S10", "a taproot script of a wrong length",
           lambda: paying(b"\x51\x02\x4e\x73"), "unknown-output-script", "output 0"),
    Attack("S14", "mainnet's coins and keys in a regtest vault",
           lambda: make_spend(MAINNET), "wrong-network"),
    Attack("S14", "mainnet's origin on a change output",
           lambda: out(derivations=MAINNET.derivations(1, 7)), "wrong-network"),
    Attack("S15", "an account key replaced", foreign_xpub, "xpub-mismatch"),
    Attack("S17", "an account key under a repeated fingerprint", repeated_fingerprint, "xpub-mismatch"),
    Attack("S17", "keys out of order in the script",
           lambda: with_input(SPEND, 0, witness_script=reversed_keys()),
           "witness-script-mismatch", "input 0"),
    Attack("S17", "keys out of order in the coin and the script",
           lambda: with_input(stated_coin(script_pubkey=p2wsh(reversed_keys())), 0,
                              witness_script=reversed_keys()),
           "script-mismatch", "input 0"),
    Attack("S17", "an input without its script",
           lambda: with_input(SPEND, 0, witness_script=None), "witness-script-mismatch", "input 0"),
    Attack("S17", "an input with a redeem script",
           lambda: with_input(SPEND, 0, redeem_script=b"\x00"), "witness-script-mismatch", "input 0"),
    Attack("S17", "a fourth key at an input",
           lambda: with_input(SPEND, 0,
                              derivations={**SPEND.inputs[0].derivations, **MALLORYS.derivations(0, 0)}),
           "origins-mismatch", "input 0"),
    Attack("P7", "a sound signature by a key outside the vault",
           strangers_signature, "bad-signature", "input 0"),
    Attack("P7", "garbage beside a good signature", garbage_signature, "bad-signature", "input 1"),
    Attack("S8", "a signature that leaves the outputs open",
           lambda: ALICE.sign(SPEND, sighash=0x02), "bad-signature", "input 0"),
    Attack("S19", "an input that is final already",
           lambda: with_input(SPEND, 0, final_script_witness=(b"",)), "input-finalised", "input 0"),
    Attack("S10", "nobody is paid", lambda: with_outputs(SPEND), "no-outputs"),
    Attack("S23", "a version no node passes on",
           lambda: replace(SPEND, tx=replace(SPEND.tx, version=9)), "non-standard-version"),
]  # fmt: skip


def judge(psbt: Psbt, **arguments) -> Inspection:
    """As it comes in from outside: through bytes."""
    return inspect(Psbt.parse(psbt.to_bytes()), VAULT, network=Network.REGTEST, **arguments)


def test_the_honest_spend_is_found_faultless():
    assert judge(SPEND).findings == ()
    assert judge(SPEND).ok


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_attack_is_refused(attack):
    inspection = judge(attack.psbt())
    assert not inspection.ok
    found = [(finding.code, finding.subject) for finding in inspection.findings]
    assert (attack.code, attack.subject) in found
    assert all(finding.sentence.endswith(".") for finding in inspection.findings)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_attack_has_a_digest_of_its_own_s24(attack):
    assert judge(attack.psbt()).digest != judge(SPEND).digest


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.subject.startswith("output")], ids=str)
def test_what_is_not_proven_change_is_shown_as_a_payment(attack):
    """Whatever an output claims: where the money is not proven to come back,
    the person is shown a payment.
    """
    psbt = attack.psbt()
    inspection = judge(psbt)
    for proven in inspection.change:
        script = VAULT.script_pubkey(proven.chain, proven.index)
        assert psbt.outputs[proven.output_index].script_pubkey == script
    shown = len(inspection.payments) + len(inspection.change) + len(inspection.op_returns)
    assert shown == len(psbt.outputs)


def test_the_same_vault_asked_for_on_another_network_s14():
    inspection = inspect(SPEND, VAULT, network=Network.MAINNET)
    assert [finding.code for finding in inspection.findings] == ["wrong-network"]


def test_a_repeated_account_key_cannot_be_written_in_a_psbt_s17():
    raw = SPEND.to_bytes()
    start = raw.index(b"\x4f\x01" + bytes.fromhex("043587cf"))
    entry = raw[start : start + 1 + 79 + 1 + 20]
    with pytest.raises(InvalidPsbt, match="twice"):
        Psbt.parse(raw[:start] + entry + raw[start:])


def test_an_attack_on_a_profile_is_refused_as_well_s1():
    profile = ALICE.profile()
    coin = fund(profile, 100_000)
    honest = build_psbt(profile, [coin], [pay(10_000), pay(89_000, "looks like change")], 0)
    forged = with_output(honest, 1, derivations=profile.derivations(1, 0))
    inspection = inspect(Psbt.parse(forged.to_bytes()), profile, network=Network.REGTEST)
    assert [finding.code for finding in inspection.findings] == ["fake-change"]
    assert all(finding.severity is Severity.REFUSE for finding in inspection.findings)
