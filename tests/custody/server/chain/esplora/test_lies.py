"""A lying explorer: which lies are detected, and what the others cost (docs/operate/chain.md)."""

import httpx
import pytest

from custody.server.chain.backend import RefusalCode, SpendingTransaction
from custody.server.chain.embedded.mining import build_block
from custody.server.chain.engine import HEADER_BYTES
from custody.server.chain.raw_blocks import BlockHeader, read_block
from custody.server.errors import ChainUnavailable
from multisig.network import Network
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from multisig.units import Sats
from tests.support.chains import REASONS, confirmed_coin
from tests.support.esplora import (
    AT_ONCE,
    URL,
    EsploraBackend,
    EsploraRig,
    as_json,
    edited,
    in_block,
    plain,
)
from tests.support.regtest import coin_of, open_output, open_script, spend

WAITING = {"confirmed": False}


def invented_deposit(number, amount=1_000_000_000):
    """Pays us out of coins that do not exist."""
    txin = TxIn(OutPoint("77" * 32, 0), 0xFFFFFFFD, b"", (b"\x01",))
    return Transaction(2, (txin,), (TxOut(Sats(amount), open_output(number)),), 0)


@pytest.fixture
def coin(rig):
    coin, _ = confirmed_coin(rig)
    return coin


@pytest.fixture
def number(rig, coin):
    return rig._used


class TestDeposits:
    @pytest.mark.parametrize("branch", [[], ["11" * 32], ["11" * 32] * 17, ["11" * 32] * 18])
    @pytest.mark.parametrize("position", [0, 1])
    def test_an_invented_proof_is_refused(self, rig, branch, position):
        number = rig.fresh()
        (block,) = rig.mine()
        transaction = invented_deposit(number)
        proof = as_json({"block_height": block.height, "merkle": branch, "pos": position})
        with (
            rig.explorer.lying(transaction, in_block(block)),
            rig.explorer.answering(f"/tx/{transaction.txid}/merkle-proof", lambda _: proof),
            pytest.raises(ChainUnavailable),
        ):
            rig.backend.outputs_to([open_output(number)])

    def test_a_proof_of_another_transaction_or_block_is_none(self, rig, coin):
        """The waiting deposit is said to be where a real one is, and proven by that one's branch."""
        number = rig.fresh()
        txid = rig.fund(number, 5_000)
        waiting = rig.chain.transaction(txid).transaction
        rig.chain._mempool._entries.pop(txid)
        block = rig.chain.block_at(coin.block.height)
        true = rig.explorer.proof(coin.outpoint.txid)
        with (
            rig.explorer.lying(waiting, in_block(block)),
            rig.explorer.answering(f"/tx/{txid}/merkle-proof", lambda _: true),
            pytest.raises(ChainUnavailable, match="wrong"),
        ):
            rig.backend.outputs_to([open_output(number)])

    @pytest.mark.parametrize("change", [{"block_height": 1}, {"block_time": 5}, {"block_hash": "12" * 32}])
    def test_a_block_that_is_not_the_one_named_is_noticed(self, rig, coin, change):
        def lie(entries):
            return [each | {"status": each["status"] | change} for each in entries]

        with (
            rig.explorer.answering("/scripthash/.*/txs/chain.*", edited(lie)),
            pytest.raises(ChainUnavailable),
        ):
            rig.stranger().outputs_to([coin.script_pubkey])
        with (
            rig.explorer.answering("/tx/.*/status", edited(lambda status: status | change)),
            pytest.raises(ChainUnavailable),
        ):
            rig.backend.transaction(coin.outpoint.txid)

    def test_amounts_and_scripts_of_the_json_are_never_read(self, rig, coin):
        """Nor what is said of outspends, nor a transaction that has nothing to do with the script."""

        def lie(entries):
            output = {"scriptpubkey": coin.script_pubkey.hex(), "value": 2_100_000_000_000_000}
            return [each | {"vout": [output] * 5, "vin": []} for each in entries]

        spent = as_json({"spent": True, "txid": "55" * 32, "vin": 0, "status": WAITING})
        with (
            rig.explorer.answering("/scripthash/.*/txs/.*", edited(lie)),
            rig.explorer.answering("/tx/.*/outspend.*", lambda _: spent),
            rig.explorer.lying(invented_deposit(rig.fresh()), WAITING),
        ):
            assert rig.backend.outputs_to([coin.script_pubkey]) == (coin,)

    def test_the_bytes_of_another_transaction(self, rig, coin):
        other, _ = confirmed_coin(rig)
        forged = rig.explorer.raw(other.outpoint.txid)
        with (
            rig.explorer.answering(f"/tx/{coin.outpoint.txid}/raw", lambda _: forged),
            pytest.raises(ChainUnavailable, match="another transaction"),
        ):
            rig.stranger().outputs_to([coin.script_pubkey])

    def test_what_a_liar_may_do_hide_and_announce(self, rig, coin):
        """Both are the explorer's to say; nothing confirmed is among it, and nothing of it can be spent."""
        invented = invented_deposit(rig._used)
        with rig.explorer.lying(invented, WAITING):
            found = coin_of(rig.backend, invented.txid, coin.script_pubkey)
            assert (found.block, found.spent) == (None, None)
        with rig.explorer.answering(
            "/scripthash/[0-9a-f]*",
            edited(lambda stats: stats | {"chain_stats": {"tx_count": 0}}),
        ):
            assert rig.stranger().outputs_to([coin.script_pubkey]) == ()


class TestSpends:
    """A spend frees a proposal's coins for another payment,
    so that a false one could have money sent twice.
    """

    @pytest.mark.parametrize("confirmed", [False, True])
    def test_a_spend_cannot_be_invented_without_our_keys(self, rig, coin, number, confirmed):
        (block,) = rig.mine()
        theft = spend(coin, number, to=open_output(rig.fresh()), witness=(open_script(number + 1),))
        status = in_block(block) if confirmed else WAITING
        with rig.explorer.lying(theft, status), pytest.raises(ChainUnavailable):
            rig.backend.outputs_to([coin.script_pubkey])
        assert rig.backend.outputs_to([coin.script_pubkey]) == (coin,)

    def test_a_valid_spend_is_not_said_to_be_confirmed_when_it_waits(self, rig, coin, number):
        (block,) = rig.mine()
        rival = spend(coin, number, to=open_output(rig.fresh()))
        with rig.explorer.lying(rival, in_block(block)), pytest.raises(ChainUnavailable):
            rig.backend.outputs_to([coin.script_pubkey])
        with rig.explorer.lying(rival, WAITING):
            (found,) = rig.backend.outputs_to([coin.script_pubkey])
            assert found.spent == SpendingTransaction(rival.txid, None)

    def test_two_spends_of_one_coin(self, rig, coin, number):
        rig.send(spend(coin, number, to=open_output(rig.fresh())))
        rival = spend(coin, number, to=open_output(rig.fresh()), fee=3_000)
        with rig.explorer.lying(rival, WAITING), pytest.raises(ChainUnavailable):
            rig.backend.outputs_to([coin.script_pubkey])


class TestBlocks:
    def test_a_block_that_shows_its_end_twice(self, rig):
        """CVE-2012-2459: its hash and its root are right,
        and what its last payment did would happen again.
        """
        for _ in range(2):
            rig.fund(rig.fresh(), 5_000)
        (block,) = rig.mine()
        assert rig.backend.data_at(block.height, b"") is not None

        def doubled(response):
            raw, last = response.content, read_block(response.content, block.hash).transactions[-1].raw
            assert raw[HEADER_BYTES] == 3
            body = raw[HEADER_BYTES + 1 :]
            return httpx.Response(200, content=raw[:HEADER_BYTES] + b"\x04" + body + last)

        with (
            rig.explorer.answering(f"/block/{block.hash}/raw", doubled),
            pytest.raises(ChainUnavailable, match="does not carry"),
        ):
            rig.backend.data_at(block.height, b"")

    @pytest.mark.parametrize(
        "change",
        [
            {"timestamp": 7},
            {"bits": 0x207FFFFE},
            {"merkle_root": "11" * 32},
            {"previousblockhash": None},
            {"id": "11" * 32},
        ],
    )
    def test_a_header_that_was_changed(self, rig, change):
        rig.mine(3)
        tip = rig.backend.tip()
        rig.mine()
        with (
            rig.explorer.answering("/block/[0-9a-f]*", edited(lambda block: block | change)),
            pytest.raises(ChainUnavailable, match=r"header that is not|another block"),
        ):
            rig.backend.tip()
        assert rig.backend.tip().height == tip.height + 1
        with (
            rig.explorer.answering("/blocks/[0-9]+", edited(lambda page: [each | change for each in page])),
            pytest.raises(ChainUnavailable, match="header that is not"),
        ):
            rig.backend.block_at(1)

    def test_a_header_without_work(self, rig):
        (tip,) = rig.mine()
        raw = rig.explorer.header_bytes(tip.hash)
        idle = next(
            made
            for made in (raw[:76] + nonce.to_bytes(4, "little") for nonce in range(100))
            if BlockHeader.parse(made).hash >= "8"
        )
        block = rig.explorer.block_value(tip.height + 1, idle)
        with (
            rig.explorer.answering("/blocks/tip/hash", lambda _: plain(block["id"])),
            rig.explorer.answering(f"/block/{block['id']}", lambda _: as_json(block)),
            pytest.raises(ChainUnavailable, match="proof of work"),
        ):
            rig.backend.tip()

    @pytest.mark.parametrize("height", [1, 10_000_000])
    def test_a_height_that_its_neighbours_do_not_have(self, rig, height):
        rig.mine(3)
        rig.backend.tip()
        (tip,) = rig.mine()
        with (
            rig.explorer.answering(f"/block/{tip.hash}", edited(lambda block: block | {"height": height})),
            pytest.raises(ChainUnavailable),
        ):
            rig.backend.tip()
        assert rig.backend.tip() == tip

    def test_blocks_that_do_not_follow_each_other(self, rig):
        blocks = rig.mine(6)
        rig.backend.tip()
        stranger = build_block(
            parent=bytes.fromhex(blocks[0].hash)[::-1],
            height=blocks[1].height,
            time=blocks[1].time + 5,
            transactions=(),
            fees=Sats(0),
            extra_nonce=999_999,
        )
        forged = rig.explorer.block_value(blocks[1].height, stranger[:80])

        def replaced(page):
            return [forged if each["height"] == forged["height"] else each for each in page]

        with (
            rig.explorer.answering("/blocks/[0-9]+", edited(replaced)),
            pytest.raises(ChainUnavailable, match="follow each other"),
        ):
            rig.backend.block_at(blocks[1].height)
        assert rig.backend.block_at(blocks[1].height) == blocks[1]

    @pytest.mark.parametrize("network", [Network.MAINNET, Network.TESTNET4, Network.SIGNET])
    def test_another_network_is_refused_at_every_call(self, rig, coin, number, network):
        backend = EsploraBackend(URL, network, pace=AT_ONCE, transport=rig.explorer)
        payment = spend(coin, number, to=open_output(rig.fresh()))
        for ask in (
            backend.tip,
            lambda: backend.block_at(0),
            lambda: backend.outputs_to([coin.script_pubkey]),
            lambda: backend.transaction(coin.outpoint.txid),
            lambda: backend.broadcast(payment),
            lambda: backend.fee_estimate(2),
        ):
            with pytest.raises(ChainUnavailable, match="another network"):
                ask()
        assert rig.explorer.sent == []

    def test_an_address_that_serves_another_chain_by_now(self, rig, tmp_path):
        """Nothing of what was known is left: the first block is looked at again."""
        rig.mine(3)
        rig.backend.tip()
        other = EsploraRig(tmp_path / "other")
        other.mine(rig.chain.tip().height + 37)
        rig.explorer._chain_now = lambda: other.chain
        with (
            rig.explorer.answering("/block-height/0", lambda _: plain("00" * 32)),
            pytest.raises(ChainUnavailable, match="another network"),
        ):
            rig.backend.tip()
        other.close()


class TestBroadcast:
    @pytest.fixture
    def payment(self, rig, coin, number):
        return spend(coin, number, to=open_output(rig.fresh()))

    @pytest.mark.parametrize(
        ("said", "match"),
        [
            *(
                (plain(f"sendrawtransaction RPC error: {REASONS[code]}", 400), "rules allow")
                for code in (RefusalCode.INVALID_SCRIPT, RefusalCode.MALFORMED, RefusalCode.TOO_LARGE)
            ),
            *((plain(words, 400), None) for words in ("mempool full", "dust", "database is locked", "")),
            (plain("12" * 32), "another transaction"),
        ],
    )
    def test_a_refusal_for_good_is_not_believed_where_the_rules_allow_it(self, rig, payment, said, match):
        """It would free the coins of a payment that the liar keeps to send later. What is no verdict, and the
        id of another transaction, are no answer either: it is tried again later, as text (mempool.space takes
        anything else for a form).
        """
        with rig.explorer.answering("/tx", lambda _: said), pytest.raises(ChainUnavailable, match=match):
            rig.backend.broadcast(payment)
        assert rig.backend.broadcast(payment).txid == payment.txid
        assert rig.explorer.last_kind == "text/plain"

    def test_a_confirmation_that_is_only_said_counts_as_none(self, rig, payment):
        said = plain("sendrawtransaction RPC error: Transaction outputs already in utxo set", 400)
        with rig.explorer.answering("/tx", lambda _: said):
            assert rig.backend.broadcast(payment).confirmed is False
