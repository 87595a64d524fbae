"""The transactions that a spend's coins come from, asked from the host piece by piece and proven by their hash.

A segwit v0 signature commits to the amount of its own input only, so that a host could understate one amount at a time
and have the difference burnt as fee (S4, CVE-2020-14199). Amounts are therefore read from the previous transaction, and
that from nowhere but its hash (S5).
"""

from device_simulators.trezor.messages import Request, TxAck, TxPart, TxRequest, TxRequestDetails
from device_simulators.trezor.work import Work, data_error
from multisig import OutPoint, Sats, Transaction, TxIn, TxOut

MAX_PARTS = 25_000
"""Inputs or outputs: a block of 4 million weight units has room for fewer inputs, and for few more outputs."""


async def ask(work: Work, request: Request, index: int | None = None, tx_hash: bytes | None = None) -> TxPart:
    """One piece of the transaction to sign, or, with `tx_hash` in display order, of a previous one."""
    details = TxRequestDetails(request_index=index, tx_hash=tx_hash)
    work.send(TxRequest(request_type=request, details=details))
    answer = await work.receive(TxAck)
    if answer.tx is None:
        raise data_error("Missing transaction")
    return answer.tx


async def fetch_previous(work: Work, tx_hash: bytes) -> Transaction:
    """The transaction with this hash (display order, 32 bytes).

    :raises Refused: what the host sent has another hash.
    """
    meta = await ask(work, Request.META, tx_hash=tx_hash)
    _check_meta(meta)
    transaction = Transaction(
        version=meta.version or 0,
        inputs=tuple([await _input(work, tx_hash, at) for at in range(meta.inputs_cnt or 0)]),
        outputs=tuple([await _output(work, tx_hash, at) for at in range(meta.outputs_cnt or 0)]),
        locktime=meta.lock_time or 0,
    )
    if transaction.txid != tx_hash.hex():
        raise data_error("Encountered invalid prevhash")
    return transaction


def _check_meta(meta: TxPart) -> None:
    if meta.extra_data_len:
        raise data_error("Extra data not enabled for this coin")
    if not 0 < (meta.inputs_cnt or 0) <= MAX_PARTS or not 0 < (meta.outputs_cnt or 0) <= MAX_PARTS:
        raise data_error("Invalid number of inputs or outputs")


async def _input(work: Work, tx_hash: bytes, index: int) -> TxIn:
    part = await ask(work, Request.INPUT, index, tx_hash)
    if len(part.inputs) != 1:
        raise data_error("Missing input")
    got = part.inputs[0]
    return TxIn(
        outpoint=OutPoint(got.prev_hash.hex(), got.prev_index),
        sequence=0xFFFFFFFF if got.sequence is None else got.sequence,
        script_sig=got.script_sig or b"",
    )


async def _output(work: Work, tx_hash: bytes, index: int) -> TxOut:
    part = await ask(work, Request.OUTPUT, index, tx_hash)
    if len(part.bin_outputs) != 1:
        raise data_error("Missing output")
    got = part.bin_outputs[0]
    return TxOut(Sats(got.amount), got.script_pubkey)
