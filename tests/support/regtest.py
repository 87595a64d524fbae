"""Coins on an embedded chain that anybody may spend: P2WSH of a script that is always true, by number."""

from collections.abc import Sequence

from custody.server.background import Background
from custody.server.chain.backend import BlockRef, FoundOutput
from custody.server.chain.embedded import EmbeddedChain
from multisig.network import Network
from multisig.script import encode_address, p2wsh
from multisig.transaction import Transaction, TxIn, TxOut
from multisig.units import Sats

# 2025-06-02, a Monday; any time between regtest's genesis and now would do.
START = 1_748_822_400


class FakeClock:
    """Unix seconds that a test moves."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def open_script(number: int) -> bytes:
    """A witness script that leaves `number` on the stack: satisfied by itself, for a number other than 0."""
    return b"\x02" + (0x0100 + number).to_bytes(2, "big")


def open_output(number: int) -> bytes:
    """The output script that pays it."""
    return p2wsh(open_script(number))


def open_address(number: int) -> str:
    address = encode_address(open_output(number), Network.REGTEST)
    assert address is not None
    return address


def coin_of(chain: EmbeddedChain, txid: str, script: bytes) -> FoundOutput:
    """The output of `txid` that pays `script`."""
    (found,) = [out for out in chain.outputs_to([script]) if out.outpoint.txid == txid]
    return found


def funded(chain: EmbeddedChain, number: int, amount: int) -> FoundOutput:
    """A confirmed coin behind `open_script(number)`."""
    txid = chain.fund(open_address(number), Sats(amount))
    chain.mine(1)
    return coin_of(chain, txid, open_output(number))


def spend(
    coin: FoundOutput,
    number: int,
    *,
    to: bytes,
    fee: int = 1_000,
    witness: tuple[bytes, ...] | None = None,
    **changes,
) -> Transaction:
    """Spends an open coin to the script `to`."""
    unlocking = (open_script(number),) if witness is None else witness
    fields = {"version": 2, "locktime": 0, "sequence": 0xFFFFFFFD} | changes
    return Transaction(
        version=fields["version"],
        inputs=(TxIn(coin.outpoint, fields["sequence"], b"", unlocking),),
        outputs=(TxOut(Sats(coin.amount - fee), to),),
        locktime=fields["locktime"],
    )


def mine_branch(
    chain: EmbeddedChain, depth: int, length: int, transactions: Sequence[Transaction] = ()
) -> tuple[BlockRef, ...]:
    """`length` blocks from `depth` blocks below the tip; the first holds `transactions`, past the mempool. A
    longer branch becomes the best chain. Raises InvalidBlock.
    """
    with chain._writing() as store:
        parent = chain._index.block_at(chain.tip().height - depth)
        branch = []
        for position in range(length):
            parent = chain._extend(store, parent, tuple(transactions) if position == 0 else (), Sats(0))
            branch.append(parent)
        return tuple(branch)


def open_chain(background: Background) -> EmbeddedChain:
    """Opens the platform's chains, of which one is embedded."""
    background.open_chains()
    return next(each for each in background.backends.values() if isinstance(each, EmbeddedChain))
