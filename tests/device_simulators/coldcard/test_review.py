"""What the virtual Coldcard refuses to sign, and what it warns of. No socket: the checks alone."""

from dataclasses import replace

import pytest

from device_simulators.coldcard import XpubPolicy
from device_simulators.coldcard.flows import sign
from device_simulators.coldcard.replies import ScriptMismatch, TransactionRefused
from device_simulators.coldcard.review import check_own_keys, check_previous_transactions, read, review
from device_simulators.coldcard.story import TESTNET, signed, transaction
from device_simulators.coldcard.wallet import Wallet, WalletStore
from device_simulators.coldcard.wallet_file import choose_wallet
from device_simulators.faults import Faults
from multisig import (
    HARDENED,
    MAX_MONEY,
    ChangeTo,
    DerivationPath,
    KeyOrigin,
    Profile,
    TxOut,
    build_psbt,
    multisig_script,
    p2wpkh,
    parse_multisig_script,
    profile_account_path,
    sats,
    verify_signatures,
)
from tests.support.coldcard import NETWORK, SEED, VAULT, own_key, vault_with_device
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
)

PSBT = make_spend(VAULT)
_APPROVE = "Press OK to approve and sign transaction."
SIXTEENS = bytes(range(16)).hex()
CHANGE = 1  # the output of `make_spend` that comes back


def store_with(*vaults):
    store = WalletStore(NETWORK)
    for number, vault in enumerate(vaults):
        store.keep(Wallet(f"Vault {number}", vault.threshold, vault.cosigners))
    return store


def look(psbt, store=None, policy=XpubPolicy.FACTORY):
    """The device's checks before it asks: the screen's text, and the review."""
    store = store_with(VAULT) if store is None else store
    parsed = read(psbt.to_bytes())
    check_previous_transactions(parsed)
    choice = choose_wallet(parsed, SEED, store, policy)
    check_own_keys(parsed, SEED)
    found = review(parsed, SEED, store, choice.wallet)
    return transaction(found, TESTNET).lines, found


def refused(psbt, reason, store=None, policy=XpubPolicy.FACTORY):
    with pytest.raises(TransactionRefused, match=reason):
        look(psbt, store, policy)


def bare(psbt):
    """Without xpubs: the device must find the wallet by the inputs."""
    return replace(psbt, xpubs=())


def test_an_honest_spend_passes_and_its_signatures_verify():
    lines, found = look(PSBT)
    assert found.change == {CHANGE}
    assert found.fee == 1_000
    assert not any(line.startswith("WARNING") for line in lines)
    assert verify_signatures(sign(found, SEED, Faults()), VAULT).progress == 1


@pytest.mark.parametrize(
    "data", [b"", b"psbt\xff", PSBT.to_bytes()[:-1], PSBT.to_bytes() + b"\0", bytes(100)]
)
def test_s23_bytes_that_are_no_psbt(data):
    with pytest.raises(TransactionRefused, match="PSBT parse failed"):
        read(data)


def test_s5_a_previous_transaction_that_is_not_the_inputs():
    other = fund(VAULT, 100_000, salt=9).previous_transaction
    refused(with_input(PSBT, 0, non_witness_utxo=other), "Invalid PSBT")


def test_s4_an_amount_that_the_previous_transaction_contradicts():
    claimed = PSBT.inputs[0].witness_utxo
    refused(with_input(PSBT, 0, witness_utxo=replace(claimed, amount=sats(90_000))), "Invalid PSBT")


def test_s5_no_utxo_at_all_for_an_input_of_ours():
    refused(with_input(PSBT, 0, witness_utxo=None, non_witness_utxo=None), "Missing own UTXO")


def test_a_previous_transaction_alone_is_enough():
    _, found = look(with_input(PSBT, 0, witness_utxo=None))
    assert len(found.uses) == 2


def test_none_of_the_keys_are_ours():
    strangers = make_vault((ALICE, BOB, CAROL))
    refused(bare(make_spend(strangers)), r"None of the keys involved .* \(need 73C5DA0A, found ")


def test_no_key_is_named():
    psbt = bare(PSBT)
    for index in range(len(psbt.inputs)):
        psbt = with_input(psbt, index, derivations={})
    refused(psbt, "does not contain any key path information")


def test_s15_xpubs_of_a_quorum_without_us():
    refused(replace(PSBT, xpubs=make_spend(make_vault()).xpubs), "My XFP not involved")


def test_s15_xpubs_that_differ_from_the_record():
    swapped = MALLORY.vault_key(NETWORK)
    xpubs = tuple(
        (swapped.xpub, origin) if origin.fingerprint == BOB.fingerprint else (xpub, origin)
        for xpub, origin in PSBT.xpubs
    )
    refused(replace(PSBT, xpubs=xpubs), "Invalid PSBT")


def test_s16_a_vault_that_is_not_on_record():
    other = vault_with_device(account=1)
    refused(bare(make_spend(other)), "Unknown multisig wallet")
    refused(make_spend(other), "XPUBs in PSBT do not match any existing wallet")
    refused(make_spend(VAULT), "XPUBs in PSBT do not match", store_with(), XpubPolicy.VERIFY)


def test_s16_a_lower_threshold_is_another_wallet():
    weaker = vault_with_device(threshold=1)
    refused(bare(make_spend(weaker)), "Unknown multisig wallet")


def test_a_wallet_can_be_offered_beside_one_on_record():
    other = make_spend(vault_with_device(account=1))
    choice = choose_wallet(other, SEED, store_with(VAULT), XpubPolicy.OFFER)
    assert choice.needs_approval
    assert choice.wallet.name == "PSBT-2-of-3"


def test_s15_a_proposal_in_which_our_key_is_not_ours_is_not_offered():
    forged = replace(VAULT.cosigners[0], xpub=MALLORY.vault_key(NETWORK).xpub)
    xpubs = ((forged.xpub, forged.origin), *PSBT.xpubs[1:])
    refused(replace(PSBT, xpubs=xpubs), "Invalid PSBT", store_with(), XpubPolicy.OFFER)


def test_s3_inputs_of_two_wallets():
    other = vault_with_device(account=1)
    mixed = build_psbt(other, [fund(other, 100_000)], [pay(99_000)], 0)
    psbt = replace(
        PSBT,
        tx=replace(PSBT.tx, inputs=(PSBT.tx.inputs[0], *mixed.tx.inputs)),
        inputs=(PSBT.inputs[0], *mixed.inputs),
        xpubs=(),
    )
    refused(psbt, "Invalid PSBT", store_with(VAULT, other))


def test_a_missing_witness_script():
    refused(bare(with_input(PSBT, 1, witness_script=None)), "Missing redeem/witness script for input #1")


def test_s1_a_witness_script_that_is_not_the_coins():
    swapped = PSBT.inputs[1]
    psbt = with_input(PSBT, 0, witness_script=swapped.witness_script, derivations=swapped.derivations)
    refused(psbt, "Input #0: spk mismatch")


def test_s9_an_origin_that_leads_to_another_key():
    item = PSBT.inputs[0]
    moved = {
        key: KeyOrigin(origin.fingerprint, DerivationPath((*origin.path.indexes[:-1], 77)))
        for key, origin in item.derivations.items()
    }
    refused(with_input(PSBT, 0, derivations=moved), r"Input #0: pk#1 wrong, tried: \[........(/_){4}/0/77\]")


def test_a_hardened_step_below_the_account():
    item = PSBT.inputs[0]
    moved = {
        key: KeyOrigin(origin.fingerprint, DerivationPath((*origin.path.indexes[:-1], HARDENED)))
        for key, origin in item.derivations.items()
    }
    refused(with_input(PSBT, 0, derivations=moved), "Input #0: hard deriv")


@pytest.mark.parametrize(
    ("sighash", "reason"),
    [
        (0x02, "Sighash NONE is not allowed"),
        (0x82, "Sighash NONE is not allowed"),
        (0x03, "Unsupported sighash flag 0x3"),
        (0x81, "Unsupported sighash flag 0x81"),
        (0x00, "Unsupported sighash flag 0x0"),
    ],
)
def test_s8_only_sighash_all_is_signed(sighash, reason):
    refused(with_input(PSBT, 0, sighash_type=sighash), reason)


def test_s8_a_consolidation_with_another_sighash():
    psbt = build_psbt(VAULT, [fund(VAULT, 100_000)], [ChangeTo(sats(99_000), 1, 0)], 0)
    refused(with_input(psbt, 0, sighash_type=0x03), "pure consolidation")


@pytest.mark.parametrize(
    ("paid", "reason"),
    [(90_909, r"bigger than 10% of total amount \(it is 10%\)"), (50_000, r"\(it is 100%\)")],
)
def test_s7_a_fee_of_a_tenth_of_the_outputs_is_refused(paid, reason):
    refused(build_psbt(VAULT, [fund(VAULT, 100_000)], [pay(paid)], 0), reason)


def test_a_fee_just_below_a_tenth_is_warned_of():
    lines, _ = look(build_psbt(VAULT, [fund(VAULT, 100_000)], [pay(90_910)], 0))
    assert "- Big Fee: Network fee is more than 5% of total value (10.0%)." in lines


def test_s7_outputs_beyond_the_inputs():
    refused(with_output(PSBT, 0, amount=sats(500_000)), "Outputs worth more than inputs!")


def test_s1_change_with_another_script():
    stolen = VAULT.script_pubkey(1, 8)
    refused(
        with_output(PSBT, CHANGE, script_pubkey=stolen),
        f"Output#{CHANGE}: P2WSH witness script has wrong hash",
    )


def test_s2_change_to_another_quorum():
    other = vault_with_device(threshold=1)
    theirs = build_psbt(other, [fund(other, 200_000)], [ChangeTo(sats(149_000), 1, 7)], 0).outputs[0]
    psbt = with_output(
        PSBT,
        CHANGE,
        script_pubkey=theirs.script_pubkey,
        witness_script=theirs.witness_script,
        derivations=theirs.derivations,
    )
    refused(psbt, f"Output#{CHANGE}: P2WSH or P2SH change output script: wrong M/N in script")


def test_s1_change_with_a_forged_origin():
    wrong = {
        key: KeyOrigin(origin.fingerprint, DerivationPath((*origin.path.indexes[:-1], 9)))
        for key, origin in PSBT.outputs[CHANGE].derivations.items()
    }
    refused(with_output(PSBT, CHANGE, derivations=wrong), "change output script: pk#1 wrong")


def test_s1_change_without_its_script():
    refused(
        with_output(PSBT, CHANGE, witness_script=None), "Missing redeem/witness script for multisig output #1"
    )


def test_change_that_names_no_key_of_ours_is_shown_as_a_payment():
    lines, found = look(with_output(PSBT, CHANGE, derivations={}, witness_script=None))
    assert not found.change
    assert "Sending 0.00199000 XTN" in lines


@pytest.mark.parametrize(
    ("chain", "index", "trouble"), [(1, 202, "beyond reasonable gap"), (1, 201, ""), (0, 3, "")]
)
def test_s9_change_at_a_far_away_index_is_warned_of(chain, index, trouble):
    psbt = build_psbt(
        VAULT, [fund(VAULT, 100_000, index=1)], [pay(50_000), ChangeTo(sats(49_000), chain, index)], 0
    )
    lines, _ = look(psbt)
    warnings = [line for line in lines if line.startswith("- Troublesome Change Outs")]
    assert bool(warnings) == bool(trouble)
    assert all(trouble in line for line in warnings)


def test_s10_data_in_two_pushes_is_shown_as_a_script():
    shown = [" - to script -", "6a0161026869"]
    script = bytes.fromhex("6a0161") + b"\x02hi"
    psbt = build_psbt(VAULT, [fund(VAULT, 100_000)], [pay(99_000), TxOut(sats(0), script)], 0)
    lines, _ = look(psbt)
    at = lines.index(shown[0])
    assert list(lines[at : at + 2]) == shown


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        (b"\x6a", ["null-data"]),
        (b"\x6a\x4c\x50" + bytes(80), ["00" * 80]),
        (b"\x6a\x4d\x10\x01" + bytes(range(16)) * 17, [SIXTEENS * 5, " ⋯", SIXTEENS * 5]),
    ],
)  # fmt: skip
def test_what_the_screen_shows_of_an_op_return(script, shown):
    psbt = build_psbt(VAULT, [fund(VAULT, 100_000)], [pay(99_000), TxOut(sats(0), script)], 0)
    lines, _ = look(psbt)
    at = lines.index(" - OP_RETURN -") + 1
    assert list(lines[at : at + len(shown)]) == shown


def test_of_more_than_ten_payments_the_largest_ten_are_shown_and_the_sum_of_the_others():
    payments = [pay(1_000 * number) for number in range(1, 13)]
    lines, _ = look(build_psbt(VAULT, [fund(VAULT, 80_000)], payments, 0))
    assert lines.count(" - to address -") == 10
    assert lines[lines.index(" - to address -") - 1] == "0.00012000 XTN"
    assert ".. plus 2 smaller output(s), not shown here, which total: 0.00003000 XTN" in lines


def test_s10_an_unknown_script_is_shown_in_full():
    script = bytes.fromhex("5120") + bytes(31)
    psbt = build_psbt(VAULT, [fund(VAULT, 100_000)], [TxOut(sats(99_000), script)], 0)
    lines, _ = look(psbt)
    assert lines[lines.index(" - to script -") + 1] == script.hex()
    assert "- Output?: Sending to 1 not well understood script(s)." in lines


def test_taproot_and_older_coins_are_not_spent():
    for script, reason in [
        (b"\x51\x20" + bytes(32), "taproot"),
        (b"\xa9\x14" + bytes(20) + b"\x87", "Unhandled"),
    ]:
        utxo = TxOut(sats(100_000), script)
        refused(with_input(PSBT, 0, witness_utxo=utxo, non_witness_utxo=None), reason)


def test_a_transaction_that_all_have_signed():
    signed = CAROL.sign(BOB.sign(sign(look(PSBT)[1], SEED, Faults())))
    refused(signed, "looks completely signed already")


def test_what_others_signed_is_kept():
    signed = sign(look(BOB.sign(PSBT))[1], SEED, Faults())
    assert verify_signatures(signed, VAULT).progress == 2


def test_an_input_of_others_is_left_alone_and_named():
    strangers = make_vault()
    foreign = build_psbt(strangers, [fund(strangers, 100_000)], [pay(99_000)], 0)
    item = replace(foreign.inputs[0], derivations={})
    psbt = replace(
        PSBT, tx=replace(PSBT.tx, inputs=(*PSBT.tx.inputs, *foreign.tx.inputs)), inputs=(*PSBT.inputs, item)
    )
    psbt = with_output(psbt, 0, amount=sats(150_000))
    lines, found = look(psbt)
    assert {use.index for use in found.uses} == {0, 1}
    assert "- Limited Signing: We are not signing these inputs, because we do not know the key: 2" in lines


def own_profile(account=0):
    path = profile_account_path(NETWORK, account)
    return Profile(NETWORK, own_key(path))


PROFILE = own_profile()
SINGLE = make_spend(PROFILE)


def claim(policy, chain, index):
    """Fields of an output that claims to pay a place of the policy."""
    script = policy.witness_script(chain, index) if isinstance(policy, type(VAULT)) else None
    return {
        "script_pubkey": policy.script_pubkey(chain, index),
        "witness_script": script,
        "derivations": policy.derivations(chain, index),
    }


def test_a_single_key_spend_passes_and_its_signatures_verify():
    lines, found = look(SINGLE, store_with())
    assert found.change == {CHANGE}
    assert not any(line.startswith(("Wallet", "WARNING")) for line in lines)
    assert verify_signatures(sign(found, SEED, Faults()), PROFILE).progress == 1


def test_s1_single_key_change_with_another_script_or_key():
    stolen = with_output(SINGLE, CHANGE, script_pubkey=foreign_script())
    refused(stolen, f"Output#{CHANGE}: Change output is fraudulent", store_with())
    other = dict(PROFILE.derivations(1, 7))
    (origin,) = other.values()
    thief = KeyOrigin(origin.fingerprint, origin.path)
    key = MALLORY.private_node(origin.path).public_key
    forged = with_output(SINGLE, CHANGE, script_pubkey=p2wpkh(key), derivations={key: thief})
    refused(forged, "Deception regarding change output", store_with())


def test_s1_an_input_whose_key_is_not_the_one_paid():
    (origin,) = SINGLE.inputs[0].derivations.values()
    key = MALLORY.private_node(origin.path).public_key
    refused(
        with_input(SINGLE, 0, derivations={key: origin}), "Input #0: pubkey vs. address wrong", store_with()
    )


def test_s9_an_input_whose_path_is_not_the_keys():
    ((key, origin),) = SINGLE.inputs[0].derivations.items()
    moved = KeyOrigin(origin.fingerprint, origin.path.child(0))
    refused(
        with_input(SINGLE, 0, derivations={key: moved}), "Input #0: pubkey vs. address wrong", store_with()
    )


def test_a_key_named_beside_the_one_that_is_paid_signs_nothing():
    bystander = dict(PROFILE.derivations(0, 55))
    item = SINGLE.inputs[0]
    _, found = look(with_input(SINGLE, 0, derivations={**bystander, **item.derivations}), store_with())
    assert {use.public_key for use in found.uses if use.index == 0} == set(item.derivations)


def test_s2_a_vaults_coins_sent_to_a_signers_own_key_are_no_change():
    lines, found = look(with_output(PSBT, CHANGE, **claim(PROFILE, 1, 7)))
    assert not found.change
    assert "Sending 0.00199000 XTN" in lines


def test_s2_a_signers_own_coins_sent_to_a_vault_are_no_change():
    psbt = replace(with_output(SINGLE, CHANGE, **claim(VAULT, 1, 7)), xpubs=PSBT.xpubs)
    lines, found = look(psbt)
    assert not found.change
    assert not any(line.startswith("Wallet") for line in lines)


def test_s3_of_mixed_coins_nothing_is_change():
    psbt = replace(
        PSBT,
        tx=replace(PSBT.tx, inputs=(PSBT.tx.inputs[0], *SINGLE.tx.inputs)),
        inputs=(PSBT.inputs[0], *SINGLE.inputs),
    )
    psbt = with_output(psbt, 0, amount=sats(150_000))
    _, found = look(psbt)
    assert len(found.uses) == 3
    assert not found.change


@pytest.mark.parametrize(
    ("path", "trouble"),
    [
        ("m/84h/1h/0h/1", "wrong path length"),
        ("m/84h/1h/0h/1h/3", "different hardening pattern"),
        ("m/84h/1h/9h/1/3", "goes to diff path prefix"),
        ("m/84h/1h/0h/2/3", "2nd last component not 0 or 1"),
        ("m/84h/1h/0h/1/2000000000", "beyond reasonable gap"),
    ],
)
def test_s9_change_to_an_unusual_place_of_ours_is_warned_of(path, trouble):
    place = DerivationPath.parse(path)
    key = SEED.public_key(place)
    origins = {key: KeyOrigin(SEED.fingerprint, place)}
    lines, found = look(
        with_output(SINGLE, CHANGE, script_pubkey=p2wpkh(key), derivations=origins), store_with()
    )
    assert found.change == {CHANGE}
    assert any(line.startswith("- Troublesome Change Outs: Output#1: ") and trouble in line for line in lines)


def test_inputs_without_a_common_pattern_give_no_opinion_of_change():
    ((key, _),) = SINGLE.inputs[0].derivations.items()
    place = DerivationPath.parse("m/0")
    key = SEED.public_key(place)
    script = p2wpkh(key)
    item = {"non_witness_utxo": None, "witness_utxo": TxOut(sats(100_000), script)}
    psbt = with_input(SINGLE, 0, derivations={key: KeyOrigin(SEED.fingerprint, place)}, **item)
    lines, _ = look(psbt, store_with())
    assert not any("Troublesome" in line for line in lines)


def test_without_the_utxo_of_a_foreign_input_the_fee_is_unknown():
    strangers = make_vault()
    foreign = build_psbt(strangers, [fund(strangers, 100_000)], [pay(99_000)], 0)
    item = replace(foreign.inputs[0], derivations={}, witness_utxo=None, non_witness_utxo=None)
    psbt = replace(
        PSBT, tx=replace(PSBT.tx, inputs=(*PSBT.tx.inputs, *foreign.tx.inputs)), inputs=(*PSBT.inputs, item)
    )
    lines, found = look(psbt)
    assert found.fee is None
    assert not any(line.startswith("Network fee") for line in lines)
    assert "- Unable to calculate fee: Some input(s) haven't provided UTXO(s): 2" in lines


def test_an_input_that_others_completed_is_named():
    psbt = SINGLE
    (key,) = psbt.inputs[0].derivations
    psbt = with_input(psbt, 0, partial_signatures={key: b"\x30" * 71})
    lines, found = look(psbt, store_with())
    assert [use.index for use in found.uses] == [1]
    assert (
        "- Partly Signed Already: Some input(s) provided were already completely signed by other parties: 0"
        in lines
    )


def test_a_witness_script_that_is_no_multisig():
    refused(bare(with_input(PSBT, 0, witness_script=bytes(40))), "Invalid PSBT")


def test_outputs_beyond_all_money():
    huge = with_output(with_output(PSBT, 0, amount=MAX_MONEY), 1, amount=MAX_MONEY)
    refused(huge, "Invalid PSBT|PSBT parse failed")


def test_two_wallets_with_the_same_keys_are_told_apart_by_their_threshold():
    all_three = vault_with_device(threshold=3)
    _, found = look(make_spend(all_three), store_with(VAULT, all_three))
    assert found.wallet.name == "Vault 1"


@pytest.mark.parametrize(
    ("sequences", "words"),
    [
        ((10,), "- Block height RTL: Input 0. has relative block height timelock of 10 blocks"),
        ((10, 10), "- Block height RTL: 2 inputs have relative block height timelock of 10 blocks"),
        (
            (10, 11),
            (
                "- Block height RTL: 2 inputs have relative block height timelock."
                "\n 0.  10 blocks\n 1.  11 blocks"
            ),
        ),
        (
            (1 << 22 | 200,),
            "- Time-based RTL: Input 0. has relative time-based timelock of:\n 1d 4h 26m 40s",
        ),
        ((1 << 31 | 10,), None),
        ((1 << 22,), None),
    ],
)
def test_a_relative_lock_is_shown(sequences, words):
    psbt = make_spend(VAULT, n_inputs=len(sequences))
    inputs = [replace(item, sequence=one) for item, one in zip(psbt.inputs, sequences, strict=True)]
    lines, _found = look(with_inputs(psbt, *inputs))
    shown = lines[lines.index("TX LOCKTIMES") + 1] if "TX LOCKTIMES" in lines else None
    assert shown == words


def test_the_screen_names_no_wallet():
    lines, found = look(PSBT)
    assert found.wallet.name == "Vault 0"
    assert not any("Vault 0" in line or "Wallet" in line for line in lines)
    assert (lines[0], lines[-1]) == (
        "OK TO SEND?",
        f"{_APPROVE} Press (2) to explore transaction. X to abort.",
    )


class TestScriptsOfAWallet:
    """The record's own check of a script, as the command to show an address uses it."""

    wallet = Wallet("Treasury", 2, VAULT.cosigners)
    script = VAULT.witness_script(0, 0)
    origins = VAULT.derivations(0, 0)

    def mismatch(self, script, origins, reason):
        with pytest.raises(ScriptMismatch, match=reason):
            self.wallet.check_script(script, origins)

    def test_its_own(self):
        self.wallet.check_script(self.script, self.origins)

    def test_not_a_multisig(self):
        self.mismatch(self.script[:-1], self.origins, "not a multisig script")

    def test_keys_out_of_order_s17(self):
        _, keys = parse_multisig_script(self.script)
        self.mismatch(multisig_script(2, keys[::-1]), self.origins, "BIP-67 violation")

    def test_a_key_without_origin(self):
        _, (first, *_) = parse_multisig_script(self.script)
        others = {key: origin for key, origin in self.origins.items() if key != first}
        self.mismatch(self.script, others, "unexpected pubkey")

    def test_a_stranger(self):
        key = next(iter(self.origins))
        stranger = {**self.origins, key: KeyOrigin(MALLORY.fingerprint, self.origins[key].path)}
        self.mismatch(self.script, stranger, "unknown XFP")

    def test_an_origin_above_the_account(self):
        key = next(iter(self.origins))
        shallow = {
            **self.origins,
            key: KeyOrigin(self.origins[key].fingerprint, DerivationPath.parse("m/48h")),
        }
        self.mismatch(self.script, shallow, "too shallow")

    def test_one_cosigner_twice(self):
        bob = VAULT.cosigners[1]
        places = [DerivationPath((*bob.origin.path, 0, index)) for index in range(3)]
        keys = sorted(bob.xpub.derive_public_key(0, index) for index in range(3))
        by_key = {bob.xpub.derive_public_key(0, i): KeyOrigin(bob.fingerprint, places[i]) for i in range(3)}
        self.mismatch(multisig_script(2, keys), by_key, "not all keys used: 1 of 3")


@pytest.mark.parametrize(
    ("is_message", "what"), [(True, "Signed BIP-322 PSBT"), (False, "Partly Signed PSBT")]
)
def test_what_stays_on_the_screen_names_what_was_signed(is_message, what):
    _title, *lines = signed(is_message=is_message).lines
    assert lines == [f"{what} shared via USB.", f"Press (1) to save {what} to SD Card."]
