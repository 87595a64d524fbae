"""Paying out of the embedded chain's own coinbases, which anyone may spend."""

from collections.abc import Iterator, Sequence

from custody.server.chain.embedded.index import CoinIndex
from custody.server.chain.embedded.mempool import COINBASE_MATURITY, Mempool
from custody.server.chain.embedded.mining import MINER_SCRIPT, MINER_WITNESS_SCRIPT
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from multisig.units import FeeRate, Sats

# Where too little has matured, a hundred blocks bring at least one more coin; after eight of regtest's halvings the
# subsidy is too small for more blocks to help.
MATURING_BLOCKS = 100
MAX_ROUNDS = 12
# An input without signature: outpoint, empty script, sequence, and a quarter of four bytes of witness.
INPUT_VBYTES = 42
SEQUENCE_FINAL = 0xFFFFFFFF


def build_payment(
    index: CoinIndex, mempool: Mempool, script: bytes, amount: Sats, rate: FeeRate
) -> Transaction | None:
    """A transaction that pays `amount` to `script`, change back to the chain; None while too little has matured."""
    fixed = _assemble((), (TxOut(amount, script), TxOut(Sats(0), MINER_SCRIPT))).vsize
    chosen: list[OutPoint] = []
    total = 0
    for outpoint, coin_amount in (*_mature_coins(index, mempool), *_waiting_change(mempool)):
        chosen.append(outpoint)
        total += coin_amount
        fee = rate.fee_for(fixed + INPUT_VBYTES * len(chosen))
        if total >= amount + fee:
            change = TxOut(Sats(total - amount - fee), MINER_SCRIPT)
            return _assemble(chosen, (TxOut(amount, script), change))
    return None


def _mature_coins(index: CoinIndex, mempool: Mempool) -> Iterator[tuple[OutPoint, Sats]]:
    for coin in index.coins_of(MINER_SCRIPT):
        unspent = index.spender(coin.outpoint) is None and mempool.spender(coin.outpoint) is None
        mature = not coin.coinbase or index.tip.height + 1 - coin.block.height >= COINBASE_MATURITY
        if unspent and mature:
            yield coin.outpoint, coin.output.amount


def _waiting_change(mempool: Mempool) -> Iterator[tuple[OutPoint, Sats]]:
    """Change of earlier payments: their chain is our own, so that it is as good as confirmed."""
    for entry in mempool:
        for vout, output in enumerate(entry.transaction.outputs):
            outpoint = OutPoint(entry.transaction.txid, vout)
            if output.script_pubkey == MINER_SCRIPT and mempool.spender(outpoint) is None:
                yield outpoint, output.amount


def _assemble(coins: Sequence[OutPoint], outputs: tuple[TxOut, ...]) -> Transaction:
    inputs = tuple(
        TxIn(outpoint, sequence=SEQUENCE_FINAL, script_sig=b"", witness=(MINER_WITNESS_SCRIPT,))
        for outpoint in coins
    )
    return Transaction(version=2, inputs=inputs, outputs=outputs, locktime=0)
