"""What a lying host gets from the virtual Trezor: a Failure, before the person is asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from device_simulators.panel import Panel, Script, approve_all
from device_simulators.trezor import VirtualTrezor
from device_simulators.trezor import messages as m
from multisig import (
    HARDENED,
    ChangeTo,
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    Network,
    NetworkKind,
    Sats,
    TxOut,
    build_psbt,
    encode_address,
    sats,
)
from tests.support.trezor_host import Host, SpendingHost, host_of, quorum, spending
from tests.support.virtual import (
    CHANGE_AMOUNT,
    NETWORK,
    PAYMENT,
    RECIPIENT,
    Record,
    coin,
    refuse_kind,
    seed,
    spend,
    vault,
)

pytestmark = pytest.mark.anyio

VAULT = vault()


class Table:
    def __init__(self, host: Host, record: Record) -> None:
        self.host = host
        self.record = record


@asynccontextmanager
async def table(
    script: Script = approve_all, network: Network = NETWORK, model: str = "1"
) -> AsyncIterator[Table]:
    device = VirtualTrezor(seed(), Panel(script), network, model=model)
    endpoint = await device.start()
    try:
        async with host_of(endpoint) as host:
            await host.initialize()
            yield Table(host, Record(device.panel))
    finally:
        await device.stop()


async def refusal(spending_host: SpendingHost) -> tuple[m.Failure, Record]:
    async with table() as it:
        failure = await spending_host.run(it.host)
        assert failure is not None
        assert spending_host.signatures == {}
        return failure, it.record


async def outputs_shown(spending_host: SpendingHost) -> int:
    async with table() as it:
        assert await spending_host.run(it.host) is None
        return it.record.kinds.count("sign-output")


def honest(inputs: int = 2) -> SpendingHost:
    return spending(spend(VAULT, inputs=inputs), VAULT)


@pytest.mark.parametrize("difference", [-1, 1, -900_000])
async def test_an_amount_that_the_previous_transaction_contradicts_s4(difference):
    host = honest()
    host.inputs[1] = replace(host.inputs[1], amount=host.inputs[1].amount + difference)
    failure, record = await refusal(host)
    assert failure.message == "Invalid amount specified"
    assert record.prompts == []


async def test_an_input_without_an_amount_s4():
    host = honest()
    host.inputs[0] = replace(host.inputs[0], amount=None)
    assert (await refusal(host))[0].message == "Invalid amount specified"


async def test_a_false_previous_transaction_s5():
    host = honest()
    txid, previous = next(iter(host.previous.items()))
    richer = replace(previous.outputs[1], amount=sats(previous.outputs[1].amount + 1))
    host.previous[txid] = replace(previous, outputs=(previous.outputs[0], richer))
    host.inputs[0] = replace(host.inputs[0], amount=richer.amount)
    failure, record = await refusal(host)
    assert failure.message == "Encountered invalid prevhash"
    assert record.prompts == []


@pytest.mark.parametrize("field", ["version", "locktime", "inputs"])
async def test_any_other_lie_about_a_previous_transaction_s5(field):
    host = honest()
    txid, previous = next(iter(host.previous.items()))
    value = (previous.inputs * 2) if field == "inputs" else getattr(previous, field) + 1
    host.previous[txid] = replace(previous, **{field: value})
    assert (await refusal(host))[0].message == "Encountered invalid prevhash"


async def test_a_previous_transaction_without_parts_or_with_too_many():
    for meta in (
        m.TxPart(inputs_cnt=0, outputs_cnt=1),
        m.TxPart(inputs_cnt=1),
        m.TxPart(inputs_cnt=25_001, outputs_cnt=1),
        m.TxPart(inputs_cnt=1, outputs_cnt=1, extra_data_len=1),
    ):
        host = honest()
        answer = host.part
        host.part = lambda kind, details, answer=answer, meta=meta: (
            meta if kind == m.Request.META else answer(kind, details)
        )
        assert (await refusal(host))[0].code == m.FailureCode.DATA_ERROR


async def test_pieces_that_do_not_come():
    empty = m.TxPart()
    cases = [
        lambda kind, details: details.tx_hash is None and kind == m.Request.INPUT,
        lambda kind, details: details.tx_hash is None and kind == m.Request.OUTPUT,
        lambda kind, details: details.tx_hash is not None and kind == m.Request.INPUT,
        lambda kind, details: details.tx_hash is not None and kind == m.Request.OUTPUT,
    ]
    for withheld in cases:
        host = honest()
        answer = host.part
        host.part = lambda kind, details, answer=answer, withheld=withheld: (
            empty if withheld(kind, details) else answer(kind, details)
        )
        failure, _ = await refusal(host)
        assert failure.message.startswith("Missing")


async def test_an_answer_without_a_transaction():
    async with table() as it:
        await it.host.call(honest().request, m.TxRequest)
        assert (await it.host.fails(m.TxAck())).message == "Missing transaction"


async def test_an_output_of_the_previous_transaction_that_is_not_there():
    host = honest()
    host.inputs[0] = replace(host.inputs[0], prev_index=2)
    assert "Not enough outputs" in (await refusal(host))[0].message


async def test_a_coin_of_another_script_s3():
    host = honest()
    host.inputs[0] = replace(host.inputs[0], prev_index=0, amount=5_000)
    assert (await refusal(host))[0].message == "Input does not match scriptPubKey"


async def test_the_same_coin_twice():
    host = honest()
    host.inputs[1] = host.inputs[0]
    assert (await refusal(host))[0].message == "Duplicate input"


@pytest.mark.parametrize("change", [{"sequence": 0}, {"prev_index": 0}, {"amount": 1}, {"script_sig": b"x"}])
async def test_an_input_that_changes_between_two_looks_s3(change):
    host = honest()
    answer = host.part

    def part(kind, details):
        seen = (kind, details.request_index) in host.asked
        got = answer(kind, details)
        if seen and kind == m.Request.INPUT and details.tx_hash is None:
            return m.TxPart(inputs=(replace(got.inputs[0], **change),))
        return got

    host.part = part
    failure, record = await refusal(host)
    assert failure.message == "Transaction has changed during signing"
    assert record.kinds[-1] == "sign-total"


async def test_a_second_input_that_changes_after_the_first_was_signed_s3():
    """The first signature is worthless: it commits to both inputs."""
    host = honest()
    answer = host.part

    def part(kind, details):
        seen = (kind, details.request_index) in host.asked
        got = answer(kind, details)
        if seen and kind == m.Request.INPUT and details.tx_hash is None and details.request_index == 1:
            return m.TxPart(inputs=(replace(got.inputs[0], sequence=0),))
        return got

    host.part = part
    async with table() as it:
        failure = await host.run(it.host)
    assert failure is not None
    assert list(host.signatures) == [0]


@pytest.mark.parametrize(
    "path",
    [
        (),
        (48, 1, 0, 2, 0, 0),
        (HARDENED + 45, HARDENED + 1, HARDENED, HARDENED + 2, 0, 0),
        (HARDENED + 48, HARDENED + 1, HARDENED, HARDENED + 1, 0, 0),
        (HARDENED + 48, HARDENED + 1, HARDENED + 101, HARDENED + 2, 0, 0),
        (HARDENED + 48, HARDENED + 1, HARDENED, HARDENED + 2, 2, 0),
        (HARDENED + 48, HARDENED + 1, HARDENED, HARDENED + 2, 0, 1_000_001),
        (HARDENED + 48, HARDENED + 1, HARDENED, HARDENED + 2, 0),
        (HARDENED + 48, HARDENED, HARDENED, HARDENED + 2, 0, 0),
    ],
)
async def test_unusual_paths_of_inputs_and_outputs_s9_s14(path):
    host = honest()
    host.inputs[0] = replace(host.inputs[0], address_n=path)
    assert (await refusal(host))[0].message == "Forbidden key path"
    if path:
        host = honest()
        host.outputs[1] = replace(host.outputs[1], address_n=path)
        assert (await refusal(host))[0].message == "Forbidden key path"


async def test_a_quorum_without_the_own_key():
    host = honest()
    strangers = quorum(vault(), 0, 0)
    host.inputs[0] = replace(host.inputs[0], multisig=replace(strangers, pubkeys=strangers.pubkeys[1:]))
    assert (await refusal(host))[0].message == "Pubkey not found in multisig script"


@pytest.mark.parametrize("changes", [{"m": 0}, {"m": 4}, {"pubkeys_order": 7}])
async def test_impossible_quorums(changes):
    host = honest()
    host.inputs[0] = replace(host.inputs[0], multisig=replace(host.inputs[0].multisig, **changes))
    assert (await refusal(host))[0].code == m.FailureCode.DATA_ERROR


async def test_a_repeated_key_s17():
    host = honest()
    keys = host.inputs[0].multisig.pubkeys
    host.inputs[0] = replace(
        host.inputs[0], multisig=replace(host.inputs[0].multisig, pubkeys=(keys[0], keys[0], keys[1]))
    )
    assert "repeat" in (await refusal(host))[0].message


async def test_change_that_is_not_ours_is_shown_s1():
    """An output to another account of ours, with our quorum's keys, is not hidden."""
    for chain, account, hidden in ((1, 0, True), (0, 0, True), (1, 1, False)):
        host = honest()
        path = (*host.outputs[1].address_n[:2], HARDENED + account, HARDENED + 2, chain, 3)
        multisig = quorum(VAULT, chain, 3)
        if account:
            own = seed().xpub  # the account's own key, in an otherwise equal quorum
            host.outputs[1] = replace(
                host.outputs[1], address_n=path, multisig=_with_own(multisig, own, path)
            )
        else:
            host.outputs[1] = replace(host.outputs[1], address_n=path, multisig=multisig)
        async with table() as it:
            assert await host.run(it.host) is None
        assert it.record.kinds == (
            ["sign-output", "sign-total"] if hidden else ["sign-output"] * 2 + ["sign-total"]
        )


async def test_change_to_another_quorum_is_shown_s2():
    host = honest()
    host.outputs[1] = replace(host.outputs[1], multisig=replace(host.outputs[1].multisig, m=1))
    assert await outputs_shown(host) == 2


def _with_own(multisig, xpub_of, path):
    key = xpub_of(DerivationPath(path[:4]), NETWORK)
    node = m.HDNode(
        depth=4,
        fingerprint=int.from_bytes(bytes(key.parent_fingerprint), "big"),
        child_num=key.child_number,
        chain_code=key.chain_code,
        public_key=key.public_key,
    )
    own = m.HDNodePath(node=node, address_n=path[4:])
    return replace(multisig, pubkeys=(own, *multisig.pubkeys[1:]))


async def test_change_whose_keys_stand_at_different_places_is_shown_s9():
    """As the firmware has it (`multisig_uses_single_path`): only who knows each of the places finds it
    again.
    """
    for index, hidden in ((3, True), (4, False)):
        host = honest()
        own, *others = quorum(VAULT, 1, 3).pubkeys
        moved = tuple(replace(other, address_n=(1, index)) for other in others)
        multisig = replace(quorum(VAULT, 1, 3), pubkeys=(own, *moved))
        path = (*host.outputs[1].address_n[:-2], 1, 3)
        host.outputs[1] = replace(host.outputs[1], address_n=path, multisig=multisig)
        assert await outputs_shown(host) == (1 if hidden else 2)


async def test_change_of_nothing_is_shown():
    host = honest()
    host.outputs[1] = replace(host.outputs[1], amount=0)
    host.outputs[0] = replace(host.outputs[0], amount=PAYMENT + CHANGE_AMOUNT)
    assert await outputs_shown(host) == 2


async def test_many_change_outputs_are_announced():
    outputs = [TxOut(PAYMENT, RECIPIENT), *(ChangeTo(Sats(100_000), 1, index) for index in range(3))]
    host = spending(spend(VAULT, outputs=outputs), VAULT)
    async with table() as it:
        assert await host.run(it.host) is None
    assert it.record.kinds == ["sign-output", "sign-change-count", "sign-total"]


def costly(fee: int) -> SpendingHost:
    made = coin(VAULT, amount=Sats(100_000_000))
    return spending(build_psbt(VAULT, [made], [TxOut(Sats(100_000_000 - fee), RECIPIENT)], 0), VAULT)


@pytest.mark.parametrize("fee", [10_000_000, 50_000_000])
async def test_a_high_fee_is_asked_about_and_signed_where_the_person_says_yes_s7(fee):
    """maxfee_kb of testnet is 10,000 sat/vB, and there is no limit above it."""
    async with table(refuse_kind("sign-fee")) as it:
        failure = await costly(fee).run(it.host)
    assert failure is not None
    assert failure.code == m.FailureCode.ACTION_CANCELLED
    assert it.record.kinds == ["sign-output", "sign-fee"]
    assert it.record.prompts[-1].lines == (
        "Fee",
        f"0.{fee // 10_000_000} TEST",
        "is unexpectedly high.",
        "Send anyway?",
    )
    host = costly(fee)
    async with table() as it:
        assert await host.run(it.host) is None
    assert list(host.signatures) == [0]


async def test_a_model_with_a_touchscreen_signs_no_fee_ten_times_as_high_s7():
    """core/v2.3.6, core/src/apps/bitcoin/sign_tx/approvers.py, with strict safety checks."""
    async with table(model="T") as it:
        assert await costly(10_000_000).run(it.host) is None
    assert it.record.kinds == ["sign-output", "sign-fee", "sign-total"]
    async with table(model="T") as it:
        failure = await costly(50_000_000).run(it.host)
    assert failure is not None
    assert (failure.code, failure.message) == (m.FailureCode.DATA_ERROR, "The fee is unexpectedly large")


async def test_a_fee_below_the_networks_threshold_is_not_asked_about():
    async with table() as it:
        assert await costly(1_000_000).run(it.host) is None
    assert it.record.kinds == ["sign-output", "sign-total"]


@pytest.mark.parametrize(
    ("locktime", "sequence", "lines"),
    [
        (840_000, 0xFFFFFFFE, ("Locktime for this", "transaction is set to", "blockheight:", "840000")),
        (
            1_700_000_000,
            0,
            ("Locktime for this", "transaction is set to", "timestamp (UTC):", "2023-11-14 22:13:20"),
        ),
        (840_000, 0xFFFFFFFF, ("Warning!", "Locktime is set but", "will have no effect.")),
    ],
)  # fmt: skip
async def test_a_lock_time_is_asked_about_also_where_it_has_no_effect(locktime, sequence, lines):
    host = honest()
    host.request = replace(host.request, lock_time=locktime)
    host.inputs = [replace(item, sequence=sequence) for item in host.inputs]
    async with table() as it:
        assert await host.run(it.host) is None
    assert it.record.kinds == ["sign-output", "sign-lock-time", "sign-total"]
    assert it.record.prompts[1].lines == (*lines, "Continue?")


async def test_more_inputs_than_the_firmware_has_room_for():
    host = honest()
    host.request = replace(host.request, inputs_count=513)
    failure, record = await refusal(host)
    assert (failure.code, failure.message) == (m.FailureCode.DATA_ERROR, "Too many inputs.")
    assert record.prompts == []


# The x of the curve's generator; 5 is the x of no point.
POINT = bytes.fromhex("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")


@pytest.mark.parametrize(
    ("model", "x_only", "refusal"),
    [
        ("1", (5).to_bytes(32, "big"), "Failed to compile output"),
        ("1", POINT, None),
        ("T", POINT, "Invalid address witness program"),
    ],
)
async def test_taproot_keys_that_are_not_paid_to(model, x_only, refusal):
    """A Trezor T 2.3.6 pays to none (decode_bech32_address in core/src/apps/bitcoin/common.py)."""
    host = honest()
    address = encode_address(b"\x51\x20" + x_only, Network.TESTNET4)
    host.outputs[0] = replace(host.outputs[0], address=address)
    async with table(model=model) as it:
        failure = await host.run(it.host)
    if refusal is None:
        assert failure is None
        return
    assert (failure.code, failure.message) == (m.FailureCode.PROCESS_ERROR, refusal)
    assert it.record.prompts == []


async def test_outputs_beyond_the_inputs_s7():
    host = honest()
    host.outputs[0] = replace(host.outputs[0], amount=21_000_000)
    failure, record = await refusal(host)
    assert failure.code == m.FailureCode.NOT_ENOUGH_FUNDS
    assert record.prompts == []


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": 21_000_001 * 100_000_000},
        {"address": None},
        {"address": "nonsense"},
        {"address": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"},
        {"script_type": m.OutputScript.TO_WITNESS},
        {"script_type": 1},
        {"script_type": m.OutputScript.TO_OP_RETURN, "op_return_data": b"x"},
        {"script_type": m.OutputScript.TO_OP_RETURN, "op_return_data": b"x", "address": None},
        {
            "script_type": m.OutputScript.TO_OP_RETURN,
            "amount": 0,
            "address": None,
            "op_return_data": b"x" * 81,
        },
        {"script_type": m.OutputScript.TO_OP_RETURN, "amount": 0, "address": None},
    ],
)
async def test_outputs_that_are_none_s10_s14(changes):
    host = honest()
    host.outputs[0] = replace(host.outputs[0], **changes)
    failure, record = await refusal(host)
    assert failure.code == m.FailureCode.DATA_ERROR
    assert record.prompts == []


@pytest.mark.parametrize(
    "changes",
    [
        {"coin_name": "Dogecoin"},
        {"serialize": True},
        {"serialize": None},
        {"inputs_count": 0},
        {"outputs_count": 0},
        {"inputs_count": 2**32 - 1},
    ],
)
async def test_requests_that_are_refused_at_once(changes):
    host = honest()
    host.request = replace(host.request, **changes)
    failure, _ = await refusal(host)
    assert failure.code == m.FailureCode.DATA_ERROR
    assert host.asked == []


@pytest.mark.parametrize("script_type", [None, 0, 1, 2, 4, 5])
async def test_inputs_of_other_kinds(script_type):
    host = honest()
    host.inputs[0] = replace(host.inputs[0], script_type=script_type)
    assert "native segwit" in (await refusal(host))[0].message


async def test_keys_without_their_chain_code_make_change_a_payment():
    """What HWI sends where the PSBT lacks the global xpubs."""
    host = honest()

    def bare(multisig):
        nodes = []
        for path in multisig.pubkeys:
            key = ExtendedPublicKey(
                NetworkKind.TESTNET,
                path.node.depth,
                Fingerprint(path.node.fingerprint.to_bytes(4, "big")),
                path.node.child_num,
                path.node.chain_code,
                path.node.public_key,
            ).derive(DerivationPath(path.address_n))
            node = m.HDNode(
                depth=0, fingerprint=0, child_num=0, chain_code=bytes(32), public_key=key.public_key
            )
            nodes.append(m.HDNodePath(node=node))
        return replace(multisig, pubkeys=tuple(nodes))

    host.inputs = [replace(item, multisig=bare(item.multisig)) for item in host.inputs]
    host.outputs[1] = replace(host.outputs[1], multisig=bare(host.outputs[1].multisig))
    async with table() as it:
        assert await host.run(it.host) is None
    assert it.record.kinds == ["sign-output", "sign-output", "sign-total"]
    assert it.record.prompts[1].lines[1] == "0.0139 TEST to"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (m.GetPublicKey(address_n=(0,) * 9), "Forbidden key path"),
        (m.GetPublicKey(address_n=(), coin_name="Dogecoin"), "Invalid coin name"),
        (m.GetAddress(address_n=(HARDENED,), coin_name="Testnet", script_type=3), "Forbidden key path"),
        (m.GetAddress(address_n=(), coin_name="Bitcoin", script_type=3), "Forbidden key path"),
        (m.GetAddress(address_n=(), coin_name="Testnet", script_type=0), "native segwit"),
        (m.SignMessage(message=b"x", coin_name="Testnet"), "Forbidden key path"),
    ],
)
async def test_other_commands_that_are_refused(request_, message):
    async with table() as it:
        failure = await it.host.fails(request_)
    assert failure.code == m.FailureCode.DATA_ERROR
    assert message in failure.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"message": b"x" * 1025}, "bytes overflow"),
        ({"message": b"\xff"}, "Message is not text"),
        ({"script_type": 3}, "P2PKH"),
    ],
)
async def test_messages_that_are_refused(changes, words):
    path = (HARDENED + 84, HARDENED + 1, HARDENED, 0, 0)
    fields = {"address_n": path, "message": b"x", "coin_name": "Testnet"} | changes
    async with table() as it:
        failure = await it.host.fails(m.SignMessage(**fields))
        assert failure.code == m.FailureCode.DATA_ERROR
        assert words in failure.message
        assert it.record.prompts == []


async def test_a_public_key_is_shown_where_the_host_asks_for_it():
    async with table() as it:
        asked = m.GetPublicKey(address_n=(HARDENED,), coin_name="Testnet", show_display=True)
        await it.host.call(asked, m.ButtonRequest)
        key = await it.host.call(m.ButtonAck(), m.PublicKey)
    assert key.xpub in it.record.prompts[0].lines
