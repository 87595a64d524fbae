"""The node's answers as values, each only from the right node, and while it is up to date.
Every request includes `getblockchaininfo` and `getindexinfo`, so that a node that was exchanged, restarted or
fell behind since the last request is noticed. Its chain must be the configured one.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from custody.common.bounded_cache import BoundedCache
from custody.server.chain.backend import BlockRef
from custody.server.chain.core.rpc import INVALID_PARAMETER, NOT_FOUND, Rpc, RpcCall, RpcFailed
from custody.server.chain.raw_blocks import RawBlock, read_block
from custody.server.errors import ChainUnavailable
from multisig.errors import InvalidTransaction
from multisig.network import Network
from multisig.transaction import OutPoint, Transaction, TxOut

_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


def garbled(what: str) -> ChainUnavailable:
    return ChainUnavailable(
        f"The node's answer is malformed ({what}). Check its address, and any proxy before it."
    )


def object_of(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise garbled("no object")
    return value


def list_of(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise garbled("no list")
    return value


def count_in(value: Any, name: str) -> int:
    number = object_of(value).get(name)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise garbled(name)
    return number


def hash_of(value: Any) -> str:
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise garbled("no hash")
    return value


def bytes_of(value: Any) -> bytes:
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError) as error:
        raise garbled("no hexadecimal") from error


def transaction_of(value: Any, txid: str) -> Transaction:
    try:
        transaction = Transaction.parse(bytes_of(value))
    except InvalidTransaction as error:
        raise garbled("no transaction") from error
    if transaction.txid != txid:
        raise garbled("another transaction")
    return transaction


# Bitcoin Core's names of the chains (util/chaintype.cpp).
CHAIN_NAMES = {
    Network.MAINNET: "main",
    Network.TESTNET4: "testnet4",
    Network.SIGNET: "signet",
    Network.REGTEST: "regtest",
}
# Headers arrive before blocks. With more headers than this ahead, the node is catching up or was cut off.
MAX_BLOCKS_BEHIND = 3
TXINDEX, FILTERINDEX = "txindex", "basic block filter index"
# For one scanblocks: ten thousand filters of mainnet's full blocks are 200 MB to read.
SCAN_SECONDS = 120.0
KEPT_HEADERS = 4_096
OUTPOINTS_PER_CALL = 1_000
# A hundred transactions of the largest standard size fit into the largest answer taken.
TRANSACTIONS_PER_CALL = 100

BLOCKCHAIN_INFO, INDEX_INFO = RpcCall("getblockchaininfo"), RpcCall("getindexinfo")


class ChainChanged(ChainUnavailable):
    """The best chain changed between two answers. Asking again may help."""


class Node:
    """Thread-safe. Every method raises ChainUnavailable."""

    def __init__(self, rpc: Rpc, network: Network) -> None:
        self.network = network
        self._rpc = rpc
        self._name = f"The {network.value} node"
        self._headers: BoundedCache[str, BlockRef] = BoundedCache(KEPT_HEADERS)

    def ask(self, *calls: RpcCall) -> tuple[Any, ...]:
        """The answers, each a JSON value or Failed, of a node that is the right one and up to date."""
        return self._ask(calls)[2:]

    def _ask(self, calls: Sequence[RpcCall], seconds: float | None = None) -> tuple[Any, ...]:
        answers = self._rpc.ask(BLOCKCHAIN_INFO, INDEX_INFO, *calls, seconds=seconds)
        self._require_chain(answers[0])
        self._require_indexes(answers[1])
        return answers

    def tip(self) -> BlockRef:
        info = self._ask(())[0]
        return BlockRef(count_in(info, "blocks"), hash_of(info.get("bestblockhash")), count_in(info, "time"))

    def hashes_at(self, heights: Sequence[int]) -> tuple[str | None, ...]:
        """Hashes of the best chain's blocks; None above its tip."""
        answers = self.ask(*(RpcCall("getblockhash", (height,)) for height in heights))
        return tuple(
            None
            if isinstance(answer, RpcFailed) and answer.code == INVALID_PARAMETER
            else hash_of(self.value(answer, "getblockhash"))
            for answer in answers
        )

    def header(self, block_hash: str) -> BlockRef:
        """The block, whichever branch it is on."""
        known = self._headers.get(block_hash)
        if known is not None:
            return known
        (answer,) = self.ask(RpcCall("getblockheader", (block_hash,)))
        header = self.value(answer, "getblockheader")
        ref = BlockRef(count_in(header, "height"), block_hash, count_in(header, "time"))
        return self._headers.keep(block_hash, ref)

    def block(self, block_hash: str) -> RawBlock:
        (answer,) = self.ask(RpcCall("getblock", (block_hash, 0)))
        return read_block(bytes_of(self.value(answer, "getblock")), block_hash)

    def scan(self, scripts: frozenset[bytes], first: int, last: int) -> tuple[str, frozenset[str]]:
        """The hash of block `last`, and those of the blocks from `first` to it whose filters match a script.

        The filters (BIP-158) cover what a block pays and what it spends; some of these match by chance.
        """
        wanted = [f"raw({script.hex()})" for script in sorted(scripts)]
        scan = RpcCall("scanblocks", ("start", wanted, first, last, "basic"))
        anchor = RpcCall("getblockhash", (last,))
        _, indexes, before, answer, after = self._ask((anchor, scan, anchor), SCAN_SECONDS)
        if isinstance(before, RpcFailed) or before != after:
            raise ChainChanged(f"{self._name}'s chain changed while it was read.")
        if isinstance(answer, RpcFailed) and answer.code == INVALID_PARAMETER:
            raise ChainUnavailable(f"{self._name} does not scan its blocks now: {answer.message}")
        result = object_of(self.value(answer, "scanblocks"))
        # scanblocks silently skips blocks whose filter is not built yet.
        if count_in(object_of(indexes).get(FILTERINDEX), "best_block_height") < last:
            raise ChainUnavailable(f"{self._name}'s block filter index is behind its blocks. It catches up.")
        scanned = result.get("completed") is True, result.get("from_height"), result.get("to_height")
        if scanned != (True, first, last):
            raise ChainUnavailable(f"{self._name} did not finish its scan of the blocks. It is asked again.")
        return hash_of(before), frozenset(hash_of(each) for each in list_of(result.get("relevant_blocks")))

    def mempool(self) -> tuple[str, ...]:
        (answer,) = self.ask(RpcCall("getrawmempool"))
        return tuple(hash_of(txid) for txid in list_of(self.value(answer, "getrawmempool")))

    def waiting(self, txids: Sequence[str]) -> tuple[Transaction | None, ...]:
        """Transactions of the mempool; None for one that has left it."""
        answers = self.ask(*(RpcCall("getrawtransaction", (txid,)) for txid in txids))
        return tuple(
            None
            if isinstance(answer, RpcFailed) and answer.code == NOT_FOUND
            else transaction_of(self.value(answer, "getrawtransaction"), txid)
            for answer, txid in zip(answers, txids, strict=True)
        )

    def outputs(self, outpoints: Sequence[OutPoint]) -> tuple[TxOut, ...]:
        """The outputs, spent or not: the node has the transaction index."""
        transactions: dict[str, Transaction] = {}
        wanted = sorted({outpoint.txid for outpoint in outpoints})
        for start in range(0, len(wanted), TRANSACTIONS_PER_CALL):
            some = wanted[start : start + TRANSACTIONS_PER_CALL]
            answers = self.ask(*(RpcCall("getrawtransaction", (txid,)) for txid in some))
            transactions |= {
                txid: transaction_of(self.value(answer, "getrawtransaction"), txid)
                for txid, answer in zip(some, answers, strict=True)
            }
        if any(outpoint.vout >= len(transactions[outpoint.txid].outputs) for outpoint in outpoints):
            raise garbled("a spend of what is not there")
        return tuple(transactions[outpoint.txid].outputs[outpoint.vout] for outpoint in outpoints)

    def spenders(self, outpoints: Sequence[OutPoint]) -> dict[OutPoint, str]:
        """The txid of the mempool transaction that spends each; absent where none does."""
        by_outpoint: dict[OutPoint, str] = {}
        for start in range(0, len(outpoints), OUTPOINTS_PER_CALL):
            some = outpoints[start : start + OUTPOINTS_PER_CALL]
            outpoints_json = [{"txid": outpoint.txid, "vout": outpoint.vout} for outpoint in some]
            (answer,) = self.ask(RpcCall("gettxspendingprevout", (outpoints_json,)))
            replies = list_of(self.value(answer, "gettxspendingprevout"))
            if len(replies) != len(some):
                raise garbled("gettxspendingprevout")
            spent = (
                (outpoint, object_of(reply).get("spendingtxid"))
                for outpoint, reply in zip(some, replies, strict=True)
            )
            by_outpoint |= {outpoint: hash_of(txid) for outpoint, txid in spent if txid is not None}
        return by_outpoint

    def value(self, answer: Any, method: str) -> Any:
        """The answer, where the call was carried out."""
        if isinstance(answer, RpcFailed):
            raise ChainUnavailable(f"{self._name} does not answer {method}: {answer.message} ({answer.code})")
        return answer

    def _require_chain(self, answer: Any) -> None:
        info = object_of(self.value(answer, BLOCKCHAIN_INFO.method))
        expected = CHAIN_NAMES[self.network]
        if info.get("chain") != expected:
            raise ChainUnavailable(
                f"{self._name} serves another chain than {expected}. Correct its address, or the node."
            )
        if info.get("initialblockdownload") is not False:
            raise ChainUnavailable(
                f"{self._name} is still fetching the chain. Wait, or look at its connections and its clock."
            )
        if count_in(info, "headers") - count_in(info, "blocks") > MAX_BLOCKS_BEHIND:
            raise ChainUnavailable(
                f"{self._name} has {info['blocks']} of {info['headers']} blocks. It catches up."
            )
        if info.get("pruned") is not False:
            raise ChainUnavailable(f"{self._name} is pruned: it cannot show old blocks. Run it with prune=0.")

    def _require_indexes(self, answer: Any) -> None:
        indexes = object_of(self.value(answer, INDEX_INFO.method))
        for name, option in ((TXINDEX, "txindex=1"), (FILTERINDEX, "blockfilterindex=1")):
            index = indexes.get(name)
            if index is None:
                raise ChainUnavailable(f"{self._name} has no {name}. Run it with {option}.")
            if object_of(index).get("synced") is not True:
                raise ChainUnavailable(f"{self._name} is still building its {name}. Wait until it is done.")
