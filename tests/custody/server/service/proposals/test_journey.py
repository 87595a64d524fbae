"""The main job, without a network between: from the deposit to the confirmed payment."""

from multisig import Network, decode_address
from tests.support.custody import SHOP, ok


def test_a_send_from_deposit_to_confirmation(funded):
    (vault,) = funded.wallets()
    assert (vault["confirmed_sats"], vault["unconfirmed_sats"], vault["locked_sats"]) == (700_000, 0, 0)
    psbt_id = ok(funded.propose(150_000))["psbt_id"]
    assert funded.proposal(psbt_id)["status"] == "PENDING"
    first = funded.approve("alice", psbt_id)
    assert (first["status"], first["collected_signatures"], first["txid"]) == ("PENDING", 1, None)
    second = funded.approve("bob", psbt_id)
    assert (second["status"], second["collected_signatures"]) == ("SIGNED", 2)
    funded.settle()
    sent = funded.proposal(psbt_id)
    assert (sent["status"], sent["txid"]) == ("BROADCASTING", sent["txid_expected"])
    (block,) = funded.chain.mine(1)
    funded.watcher.look()
    confirmed = funded.proposal(psbt_id)
    assert (confirmed["status"], confirmed["confirmations"]) == ("CONFIRMED", 1)
    assert (confirmed["block_height"], confirmed["block_hash"]) == (block.height, block.hash)
    funded.chain.mine(2)
    funded.watcher.look()
    assert funded.proposal(psbt_id)["confirmations"] == 3
    outputs = funded.chain.outputs_to([decode_address(SHOP, Network.REGTEST)])
    assert [out.amount for out in outputs] == [150_000]
    (vault,) = funded.wallets()
    assert vault["confirmed_sats"] == 700_000 - 150_000 - confirmed["fee_sats"]
    assert vault["locked_sats"] == 0
