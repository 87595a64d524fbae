"""Where change goes: unsigned proposals must open no gap at which a wallet that
restores the vault would stop.
"""

from multisig import CHANGE, Network, Psbt, inspect
from tests.support.custody import ok
from tests.support.replacing import cancel, finished, made

# BIP-44: a wallet that restores looks so far beyond the last address that was used.
GAP = 20


def change_index(desk, psbt_id) -> int:
    psbt = Psbt.parse(desk.proposal(psbt_id)["psbt_base64"])
    (back,) = inspect(psbt, desk.policy, network=Network.REGTEST).change
    assert back.chain == CHANGE
    return back.index


def test_proposals_that_end_unsigned_use_up_no_more_addresses_than_a_restoring_wallet_looks_at(desk):
    desk.deposit(500_000)
    for _ in range(GAP + 2):
        ok(cancel(desk, made(desk.propose(10_000, fee_rate="2"))))
    psbt_id = made(desk.propose(10_000, fee_rate="2"))
    last = change_index(desk, psbt_id)
    assert last == GAP - 1
    finished(desk, psbt_id)
    assert change_index(desk, made(desk.propose(10_000, fee_rate="2"))) == last + 1
