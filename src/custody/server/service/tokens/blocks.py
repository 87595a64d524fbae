"""From a block of a chain to what the tokens' machine reads of it."""

from custody.server.chain.backend import DataBlock, DataTransaction
from multisig.script import ScriptKind, classify, parse_op_return
from multisig.tokens.machine import TokenBlock, TokenTransaction
from multisig.tokens.payload import MAGIC


def token_block(block: DataBlock) -> TokenBlock:
    """Its transactions with a token's data, in the block's order (docs/tokens.md, "What calls do")."""
    found = tuple(_transaction(carrier) for carrier in block.transactions)
    return TokenBlock(block.ref.height, bytes.fromhex(block.ref.hash)[::-1], found)


def _transaction(carrier: DataTransaction) -> TokenTransaction:
    """The data of its one OP_RETURN output, which holds no money; another such output beside it spoils both."""
    outputs = [
        output
        for output in carrier.transaction.outputs
        if classify(output.script_pubkey) is ScriptKind.OP_RETURN
    ]
    data = parse_op_return(outputs[0].script_pubkey) if len(outputs) == 1 else None
    whole = data is not None and data.startswith(MAGIC) and outputs[0].amount == 0
    return TokenTransaction(carrier.transaction.txid, carrier.caller, data if whole else None)
