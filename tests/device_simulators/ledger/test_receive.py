"""What a lying host gets from the virtual Ledger: a status word before the person is asked, or a screen that
tells the truth.
"""

from hashlib import sha256

import pytest
from hwilib.common import AddressType
from hwilib.devices.ledger_bitcoin.client_command import ClientCommandInterpreter
from hwilib.devices.ledger_bitcoin.merkle import MerkleTree, element_hash
from hwilib.devices.ledger_bitcoin.wallet import MultisigWallet

from device_simulators.ledger.policy import Arrangement, Header, KeyInfo, Policy, Template
from device_simulators.ledger.receive import Ownership
from device_simulators.ledger.screens import amount
from device_simulators.ledger.spend import describe_op_return
from device_simulators.ledger.wallet import Wallet
from device_simulators.ledger.work import Refused
from device_simulators.panel import approve_all, ask_person
from multisig import (
    HARDENED,
    MAX_MONEY,
    ChangeTo,
    KeyOrigin,
    OriginKey,
    Psbt,
    Sats,
    SighashCache,
    TxOut,
    build_psbt,
    multisig_account_path,
    multisig_script,
    op_return_script,
    p2wsh,
    sats,
    verify_ecdsa,
)
from tests.support.ledger_host import OK, VAULT, Spending, key_text, policy_of, registered, spending, table
from tests.support.virtual import (
    CHANGE_AMOUNT,
    COIN,
    NETWORK,
    PAYMENT,
    RECIPIENT,
    coin,
    profile,
    refuse_kind,
    seed,
    spend,
    vault,
)

pytestmark = pytest.mark.anyio

PREVIOUS, WITNESS_UTXO, SIGHASH, DERIVATION, TXID, VOUT = (bytes((n,)) for n in (0, 1, 3, 6, 0x0E, 0x0F))
OUT_DERIVATION, OUT_AMOUNT, OUT_SCRIPT = (bytes((n,)) for n in (2, 3, 4))
WRONG, UNSUPPORTED, DENIED = (0x6A80, b""), (0x6A82, b""), (0x6985, b"")
REVIEW = ["sign-transaction"]
POLICY = policy_of(VAULT)


def honest(inputs: int = 1, **options) -> Spending:
    return spending(spend(VAULT, inputs=inputs, **options), POLICY)


def utxo(amount: int, script: bytes) -> bytes:
    return TxOut(sats(amount), script).serialize()


async def outcome(lie: Spending, script=approve_all):
    """(answer, what was shown, what was yielded), for a host that registered its policy honestly."""
    async with table() as it:
        mark = None if not lie.policy.name else await registered(it.host, lie.policy)
        it.device.panel.script = script
        del it.record.events[:]
        answer = await it.host.sign(lie, mark)
        return answer, it.record, it.host.yielded


async def refused(lie: Spending, status=WRONG) -> None:
    answer, record, yielded = await outcome(lie, ask_person)
    assert (answer, record.prompts, yielded) == (status, [], [])


def with_signatures(psbt: Psbt, yielded: list[bytes]) -> Psbt:
    signatures = {one[0]: {one[2 : 2 + one[1]]: one[2 + one[1] :]} for one in yielded}
    return psbt.with_signatures(signatures)


@pytest.mark.parametrize("kind", REVIEW)
async def test_a_person_s_no_ends_it(kind):
    answer, record, yielded = await outcome(honest(), refuse_kind(kind))
    assert (answer, record.kinds[-1], yielded) == (DENIED, kind, [])


async def test_an_older_host_gets_signatures_without_their_keys():
    lie = honest()
    async with table() as it:
        mark = await registered(it.host, POLICY)
        assert (await it.host.run({**lie.apdu(mark), "p2": 0}, lie.interpreter()))[0] == OK
        (one,) = it.host.yielded
    assert one[:2] == b"\x00\x30"  # input 0, then DER at once


@pytest.mark.parametrize("difference", [-1, 1, 10_000])
async def test_an_amount_that_the_previous_transaction_contradicts_s4(difference):
    lie = honest()
    lie.inputs[0][WITNESS_UTXO] = utxo(COIN + difference, VAULT.script_pubkey(0, 0))
    await refused(lie)


async def test_a_script_that_the_previous_transaction_contradicts_s4():
    lie = honest()
    lie.inputs[0][WITNESS_UTXO] = utxo(COIN, VAULT.script_pubkey(0, 1))
    await refused(lie)


async def test_a_false_previous_transaction_s5():
    lie, other = honest(), honest(2)
    lie.inputs[0][PREVIOUS] = other.inputs[1][PREVIOUS]
    await refused(lie)


@pytest.mark.parametrize("vout", [2, 0xFFFFFFFF])
async def test_an_output_of_the_previous_transaction_that_is_not_there(vout):
    lie = honest()
    lie.inputs[0][VOUT] = vout.to_bytes(4, "little")
    await refused(lie)


async def test_a_missing_previous_transaction_is_a_risk_that_the_person_is_told_of_s5():
    lie = honest()
    del lie.inputs[0][PREVIOUS]
    answer, record, yielded = await outcome(lie)
    assert (answer, record.kinds) == ((OK, b""), ["sign-unverified-inputs", *REVIEW])
    assert len(yielded) == 1
    answer, record, yielded = await outcome(lie, refuse_kind("sign-unverified-inputs"))
    assert (answer, record.kinds, yielded) == (DENIED, ["sign-unverified-inputs"], [])


@pytest.mark.parametrize("missing", [(WITNESS_UTXO,), (WITNESS_UTXO, PREVIOUS), (TXID,), (VOUT,)])
async def test_an_input_that_leaves_out_what_is_needed(missing):
    lie = honest()
    for field in missing:
        del lie.inputs[0][field]
    await refused(lie)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (TXID, b"\x01" * 31),
        (VOUT, b"\x01"),
        (b"\x10", b"\xff"),
        (SIGHASH, b"\x01"),
        (PREVIOUS, b""),
        (PREVIOUS, b"\x00" * 60),
        (WITNESS_UTXO, b"\x01" * 8),
        (WITNESS_UTXO, utxo(COIN, b"\x00" * 35)),
        (WITNESS_UTXO, (MAX_MONEY + 1).to_bytes(8, "little") + b"\x01\x51"),
        (DERIVATION + b"\x04" * 65, bytes(4)),
    ],
)
async def test_input_fields_of_a_wrong_form_s23(field, value):
    lie = honest()
    if field.startswith(DERIVATION):
        lie.inputs[0] = {key: kept for key, kept in lie.inputs[0].items() if key[:1] != DERIVATION}
    lie.inputs[0][field] = value
    await refused(lie)


@pytest.mark.parametrize("field", [OUT_AMOUNT, OUT_SCRIPT])
@pytest.mark.parametrize("value", [None, b"", b"\x6a" * 84, b"\xff" * 8])
async def test_output_fields_of_a_wrong_form_s10_s23(field, value):
    lie = honest()
    lie.outputs[0].pop(field)
    if value is not None:
        lie.outputs[0][field] = value
    async with table(ask_person) as it:
        it.device.panel.script = approve_all
        mark = await registered(it.host, POLICY)
        it.device.panel.script = ask_person
        assert await it.host.sign(lie, mark) in {WRONG, UNSUPPORTED}
        assert it.device.panel.pending is None


@pytest.mark.parametrize("which", [b"\x02", b"\x03"])
async def test_globals_of_a_wrong_form_s23(which):
    lie = honest()
    lie.globals[which] = b"\x01"
    await refused(lie)


async def test_a_transaction_without_a_version():
    lie = honest()
    del lie.globals[b"\x02"]
    await refused(lie)


async def test_the_same_coin_twice():
    lie = honest(2)
    lie.inputs[1] = lie.inputs[0]
    await refused(lie)


async def test_a_coin_without_an_owner_or_of_another_wallet_s3():
    lie = honest()
    lie.inputs[0] = {key: value for key, value in lie.inputs[0].items() if key[:1] != DERIVATION}
    await refused(lie)
    await refused(spending(spend(vault(1)), POLICY))
    await refused(spending(spend(profile()), POLICY))


async def test_coins_of_another_wallet_among_ours_are_a_risk_that_the_person_is_told_of_s3():
    mixed = build_psbt(VAULT, [coin(VAULT, 0), coin(VAULT, 1)], [TxOut(Sats(2 * COIN - 5_000), RECIPIENT)], 0)
    lie = spending(mixed, POLICY)
    other = spending(spend(vault(1), inputs=2), POLICY)
    lie.inputs[1] = other.inputs[1]
    answer, record, yielded = await outcome(lie)
    assert (answer, record.kinds) == ((OK, b""), ["sign-external-inputs", *REVIEW])
    assert [one[0] for one in yielded] == [0]


@pytest.mark.parametrize("sighash", [0x02, 0x03, 0x81, 0x82, 0x83])
async def test_an_unusual_sighash_is_a_risk_that_the_person_is_told_of_s8(sighash):
    psbt = spend(VAULT)
    lie = spending(psbt, POLICY)
    lie.inputs[0][SIGHASH] = sighash.to_bytes(4, "little")
    answer, record, (one,) = await outcome(lie)
    assert (answer, record.kinds) == ((OK, b""), ["sign-sighash", *REVIEW])
    key, signature = one[2:35], one[35:]
    digest = SighashCache(psbt.tx).segwit_v0(0, VAULT.witness_script(0, 0), COIN, sighash)
    assert signature[-1] == sighash
    assert verify_ecdsa(key, digest, signature[:-1])


@pytest.mark.parametrize("sighash", [0x00, 0x04, 0x84, 0x101, 0xFFFFFFFF])
async def test_other_sighashes_are_refused_s8(sighash):
    lie = honest()
    lie.inputs[0][SIGHASH] = sighash.to_bytes(4, "little")
    await refused(lie, UNSUPPORTED)


async def test_a_single_sighash_without_its_output_s8():
    lie = honest(3)
    lie.inputs[2][SIGHASH] = (3).to_bytes(4, "little")
    await refused(lie, UNSUPPORTED)


def change_output(lie: Spending) -> dict[bytes, bytes]:
    (found,) = [one for one in lie.outputs if one[OUT_SCRIPT] == VAULT.script_pubkey(1, 3)]
    return found


async def shown_for(lie: Spending) -> list[str]:
    """The payments on the one screen that is approved: their amounts."""
    answer, record, _ = await outcome(lie)
    assert (answer, record.kinds) == ((OK, b""), REVIEW)
    return [line for line in record.prompts[0].lines if line.startswith("Amount ")]


async def test_change_that_goes_elsewhere_is_shown_s1():
    lie = honest()
    change_output(lie)[OUT_SCRIPT] = RECIPIENT
    assert len(await shown_for(lie)) == 2


async def test_change_that_names_another_place_is_shown_s1():
    lie = honest()
    change_output(lie)[OUT_SCRIPT] = VAULT.script_pubkey(1, 4)
    assert len(await shown_for(lie)) == 2


async def test_change_that_names_no_key_is_shown_s1():
    lie = honest()
    change = change_output(lie)
    for key in [key for key in change if key[:1] == OUT_DERIVATION]:
        del change[key]
    assert len(await shown_for(lie)) == 2


@pytest.mark.parametrize("other", [vault(1), vault(2, 2), profile(1)], ids=["1-of-3", "2-of-2", "theirs"])
async def test_change_to_another_quorum_is_shown_s2(other):
    psbt = spend(VAULT, outputs=[TxOut(PAYMENT, RECIPIENT), TxOut(CHANGE_AMOUNT, other.script_pubkey(1, 3))])
    lie = spending(psbt, POLICY)
    honest_change = change_output(honest())
    theirs = lie.outputs[1]
    theirs |= {key: value for key, value in honest_change.items() if key[:1] == OUT_DERIVATION}
    assert len(await shown_for(lie)) == 2


async def test_money_to_an_own_receiving_address_is_shown_as_a_payment():
    psbt = spend(VAULT, outputs=[TxOut(PAYMENT, RECIPIENT), ChangeTo(CHANGE_AMOUNT, 0, 3)])
    assert len(await shown_for(spending(psbt, POLICY))) == 2


@pytest.mark.parametrize("chain", [2, 1 + HARDENED])
async def test_change_on_a_chain_that_is_none_is_shown_s9(chain):
    lie = honest()
    change = change_output(lie)
    for key in [key for key in change if key[:1] == OUT_DERIVATION]:
        change[key] = change[key][:-8] + chain.to_bytes(4, "little") + change[key][-4:]
    assert len(await shown_for(lie)) == 2


async def test_change_at_an_absurd_index_is_not_shown_as_on_the_hardware_s9():
    """The app does not limit the change index: the program that makes the transaction checks it."""
    psbt = spend(VAULT, outputs=[TxOut(PAYMENT, RECIPIENT), ChangeTo(CHANGE_AMOUNT, 1, 999_999)])
    assert len(await shown_for(spending(psbt, POLICY))) == 1


async def test_a_hardened_index_s9():
    lie = honest()
    change = change_output(lie)
    for key in [key for key in change if key[:1] == OUT_DERIVATION]:
        change[key] = change[key][:-4] + (3 + HARDENED).to_bytes(4, "little")
    await refused(lie)


@pytest.mark.parametrize("bad", [b"", b"\x00" * 3, b"\x01" * 9, b"\x00" * 8])
async def test_derivations_that_are_none_make_an_input_a_foreign_one_s23(bad):
    lie = honest()
    for key in [key for key in lie.inputs[0] if key[:1] == DERIVATION]:
        lie.inputs[0][key] = bad
    await refused(lie)


async def test_many_change_outputs_are_refused():
    for count, expected in ((10, (OK, b"")), (11, UNSUPPORTED)):
        outputs = [ChangeTo(Sats(50_000), 1, index) for index in range(count)]
        outputs.append(TxOut(Sats(COIN - 50_000 * count - 5_000), RECIPIENT))
        answer, record, _ = await outcome(spending(spend(VAULT, outputs=outputs), POLICY))
        assert answer == expected
        assert (record.kinds == []) == (answer == UNSUPPORTED)


async def test_a_high_fee_is_warned_of_s7():
    """On a page of its own, and no question of its own."""
    for fee, warned in ((99_999, False), (100_000, True)):
        psbt = spend(VAULT, outputs=[TxOut(Sats(COIN - fee), RECIPIENT)])
        answer, record, _ = await outcome(spending(psbt, POLICY))
        assert (answer, record.kinds) == ((OK, b""), REVIEW)
        assert ("High fees warning Fees are above 10% of total amount" in record.prompts[0].lines) == warned


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 TEST"),
        (1, "0.00000001 TEST"),
        (50_000, "0.0005 TEST"),
        (100_000_000, "1 TEST"),
        (2_050_000_000, "20.5 TEST"),
        (MAX_MONEY, "21000000 TEST"),
    ],
)
def test_amounts_are_written_as_the_app_writes_them(value, text):
    assert amount(Sats(value), "TEST") == text


async def test_more_payments_than_are_listed_are_one_approval_still():
    for count, label in ((16, "To"), (17, "Address")):
        outputs = [TxOut(Sats(10_000), RECIPIENT)] * count
        answer, record, _ = await outcome(spending(spend(VAULT, outputs=outputs), POLICY))
        assert (answer, record.kinds) == ((OK, b""), REVIEW)
        lines = record.prompts[0].lines
        assert f"Transaction output {count} of {count}" in lines
        assert sum(line.startswith(f"{label} tb1") for line in lines) == count


async def test_outputs_beyond_the_inputs_s7():
    lie = honest()
    lie.outputs[0][OUT_AMOUNT] = (2 * COIN).to_bytes(8, "little")
    await refused(lie)


async def test_an_output_without_an_address_is_refused_s10():
    psbt = spend(VAULT, outputs=[TxOut(Sats(COIN - 5_000), b"\x51")])
    await refused(spending(psbt, POLICY), UNSUPPORTED)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("6a", "OP_RETURN"),
        ("6a00", "OP_RETURN 0"),
        ("6a4f", "OP_RETURN -1"),
        ("6a51", "OP_RETURN 1"),
        ("6a60", "OP_RETURN 16"),
        ("6a02abcd52", "OP_RETURN 0xabcd 2"),
        ("6a0111ab", None),
        ("6a02ab", None),
        ("6a0105", None),
        ("6a0181", None),
        ("6a4c02abcd", None),
        ("6a4c", None),
        ("6a4d0100ab", None),
        ("6a50", None),
        ("6a61", None),
        ("6a515151515151", None),
        ("51", None),
        ("", None),
    ],
)
def test_op_return_scripts_as_they_are_described_s10(script, text):
    assert describe_op_return(bytes.fromhex(script)) == text


async def test_money_in_an_op_return_is_shown():
    outputs = [TxOut(Sats(7_000), op_return_script(b"lost")), ChangeTo(Sats(COIN - 12_000), 1, 0)]
    _, record, _ = await outcome(spending(spend(VAULT, outputs=outputs), POLICY))
    assert {"Amount 0.00007 TEST", "To OP_RETURN 0x6c6f7374"} <= set(record.prompts[0].lines)


async def test_too_many_inputs_outputs_or_fields_are_refused_before_they_are_asked_for():
    lie = honest()
    apdu = lie.apdu(bytes(32))
    size = 1 + 64
    async with table(ask_person) as it:
        for at, number, status in ((size, 513, UNSUPPORTED), (size + 33, 513, UNSUPPORTED), (0, 513, WRONG)):
            data = apdu["data"][:at] + b"\xfd" + number.to_bytes(2, "little") + apdu["data"][at + 1 :]
            assert await it.host.exchange(0xE1, 0x04, data) == status


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"hello\nthere", "hello\nthere"),
        ("prüfe".encode(), None),
        (b"a\x00b", None),
        (b"a" * 640, "a" * 640),
        (b"a" * 641, None),
        (b"", ""),
    ],
)
async def test_messages_are_shown_whole_or_as_their_hash(text, shown):
    async with table() as it:
        assert (await it.host.sign_message(text, "m/84'/1'/0'/0/0"))[0] == OK
        (prompt,) = it.record.prompts
    expected = f"hash {sha256(text).hexdigest().upper()}" if shown is None else shown
    assert prompt.lines == ("Review message", "Path 84'/1'/0'/0/0", f"Message {expected}")


async def test_messages_that_are_refused():
    async with table(refuse_kind("sign-message")) as it:
        assert await it.host.sign_message(b"hello", "m/84'/1'/0'/0/0") == DENIED
        too_long = b"\x00\xfe" + (64 * 1024 + 1).to_bytes(4, "little") + bytes(32)
        assert await it.host.exchange(0xE1, 0x10, too_long) == WRONG
        assert await it.host.exchange(0xE1, 0x10, b"\x0b" + bytes(44 + 33)) == WRONG
        assert it.record.kinds == ["sign-message"]


def own_quorum(accounts: int) -> tuple[Spending, set[bytes]]:
    """A coin of a quorum that is this device's alone, and its keys there."""
    keys, lie = {}, honest()
    texts = []
    for number in range(accounts):
        account = multisig_account_path(NETWORK, number)
        xpub = seed().xpub(account, NETWORK)
        origin = KeyOrigin(seed().fingerprint, account)
        texts.append(key_text(OriginKey(origin, xpub)))
        keys[xpub.derive_public_key(0, 0)] = b"".join(
            step.to_bytes(4, "little") for step in (*account.indexes, 0, 0)
        )
    script = p2wsh(multisig_script(2, sorted(keys)))
    lie.policy = MultisigWallet("All mine", AddressType.WIT, 2, texts)
    lie.inputs[0] = {key: value for key, value in lie.inputs[0].items() if key[:1] != DERIVATION}
    lie.inputs[0] |= {DERIVATION + key: bytes(seed().fingerprint) + path for key, path in keys.items()}
    lie.inputs[0][WITNESS_UTXO] = utxo(COIN, script)
    del lie.inputs[0][PREVIOUS]
    return lie, set(keys)


async def test_each_own_key_of_a_quorum_signs():
    lie, keys = own_quorum(2)
    answer, record, yielded = await outcome(lie)
    assert (answer, record.kinds) == ((OK, b""), ["sign-unverified-inputs", *REVIEW])
    assert {one[2:35] for one in yielded} == keys
    assert [one[0] for one in yielded] == [0, 0]


async def test_more_own_keys_than_the_app_signs_with():
    lie, _ = own_quorum(9)
    await refused(lie, UNSUPPORTED)


async def test_a_policy_without_an_own_key_is_not_signed_for_whatever_its_mark_s15():
    """No registration gives such a mark; that is not relied upon."""
    keys = tuple(KeyInfo.parse(key_text(key).encode()) for key in VAULT.cosigners)
    header = Header(b"Savings", 0, bytes(32), 3, bytes(32))
    policy = Policy(header, "", Template(Arrangement.SORTED, 2, 3), keys)
    with pytest.raises(Refused):
        Ownership(Wallet(seed(9), NETWORK), policy)


async def test_a_message_that_is_cut_into_other_pieces():
    """Two texts must not have one commitment."""
    interpreter = ClientCommandInterpreter()
    pieces = [b"a", b"b" * 64]
    interpreter.add_known_list(pieces)
    root = MerkleTree(element_hash(piece) for piece in pieces).root
    apdu = {"cla": 0xE1, "ins": 0x10, "p2": 1, "data": b"\x00\x41" + root}
    async with table() as it:
        assert await it.host.run(apdu, interpreter) == WRONG
        assert it.record.prompts == []
