"""The PSBT parser: bytes from a platform or a colleague, up to the inspection and the verified signatures."""

import io
from collections.abc import Iterator
from dataclasses import replace

from embit.psbt import PSBT as EmbitPsbt  # noqa: N811 - a class named like a constant

from fuzz.psbt_mutator import mutate
from fuzz.records import records
from fuzz.target import Target, require
from multisig import (
    Inspection,
    MultisigError,
    Policy,
    Psbt,
    Transaction,
    TxOut,
    accept_signatures,
    finalise,
    inspect,
    op_return_script,
    sats,
    verify_signatures,
)
from multisig.signatures import signing_inputs
from tests.support.wallets import ALICE, BOB, make_spend, make_vault, with_input, with_output, with_outputs

VAULT = make_vault()
PROFILE = ALICE.profile()


def check(data: bytes) -> None:
    """Only MultisigError is raised; a round trip gives the same bytes, and another parser reads the same."""
    psbt = _parsed(data)
    if psbt is None:
        return
    _require_stable(psbt)
    _require_second_reader(psbt)
    for policy in (VAULT, PROFILE):
        inspection = inspect(psbt, policy, network=policy.network)
        if inspection.ok:
            _require_whole(inspection, psbt, policy)
        _check_signatures(psbt, policy, believed=inspection.ok)


def _parsed(data: bytes) -> Psbt | None:
    try:
        return Psbt.parse(data)
    except MultisigError as error:
        require(bool(str(error)) and bool(error.hint), "an error says nothing")
        return None


def _require_stable(psbt: Psbt) -> None:
    written = psbt.to_bytes()
    again = Psbt.parse(written)
    require(again == psbt, "what was written is read as something else")
    require(again.to_bytes() == written, "one PSBT has two forms")
    require(Psbt.parse(psbt.to_base64()) == psbt, "its text is read as something else")


def _require_second_reader(psbt: Psbt) -> None:
    """embit reads the same transaction from the transaction's own bytes."""
    bare = replace(
        psbt,
        inputs=tuple(
            type(item)(outpoint=item.outpoint, sequence=item.sequence, witness_utxo=item.witness_utxo)
            for item in psbt.inputs
        ),
        outputs=tuple(
            type(item)(amount=item.amount, script_pubkey=item.script_pubkey) for item in psbt.outputs
        ),
        xpubs=(),
    )
    seen = EmbitPsbt.read_from(io.BytesIO(bare.to_bytes()))
    require([i.vout for i in seen.inputs] == [i.outpoint.vout for i in psbt.inputs], "other coins")
    require([i.txid.hex() for i in seen.inputs] == [i.outpoint.txid for i in psbt.inputs], "other coins")
    paid = [(o.value, o.script_pubkey.data) for o in seen.outputs]
    require(paid == [(o.amount, o.script_pubkey) for o in psbt.outputs], "other payments")


def _require_whole(inspection: Inspection, psbt: Psbt, policy: Policy) -> None:
    """An inspection without refusals accounts for every output once, and for every satoshi."""
    shown = (*inspection.payments, *inspection.change, *inspection.op_returns)
    require(
        sorted(item.output_index for item in shown) == list(range(len(psbt.outputs))), "an output is missing"
    )
    require(inspection.total_in - inspection.total_out == inspection.fee >= 0, "satoshis are missing")
    require(inspection.total_out == sum(output.amount for output in psbt.tx.outputs), "satoshis are missing")
    for item in inspection.change:
        script = policy.script_pubkey(item.chain, item.index)
        require(script == psbt.tx.outputs[item.output_index].script_pubkey, "change that is not ours")
    for coin, item in zip(inspection.inputs, psbt.inputs, strict=True):
        previous = item.non_witness_utxo
        require(previous is not None and previous.txid == item.outpoint.txid, "an amount that nothing proves")
        assert previous is not None
        require(previous.outputs[item.outpoint.vout].amount == coin.amount, "another amount than the coin's")
    again = inspect(Psbt.parse(psbt.to_bytes()), policy, network=policy.network)
    require(again.digest == inspection.digest, "one PSBT is approved under two names")


def _check_signatures(psbt: Psbt, policy: Policy, *, believed: bool) -> None:
    try:
        signing = signing_inputs(psbt, policy)
    except MultisigError:
        require(not believed, "an inspection believes coins that cannot be signed for")
        return
    try:
        report = verify_signatures(psbt, policy)
        taken = accept_signatures(psbt.without_signatures(), psbt, policy, None)
        require(verify_signatures(taken, policy) == report, "signatures are lost on the way")
        finished = finalise(psbt, policy)
    except MultisigError:
        return
    require(len(signing) == len(report.inputs) == len(finished.inputs), "an input is missing")
    require(Transaction.parse(finished.serialize()).txid == psbt.tx.txid, "another transaction is finalised")


def seeds() -> Iterator[bytes]:
    one, two = make_spend(VAULT, n_inputs=1), make_spend(VAULT)
    profile = make_spend(PROFILE, n_inputs=1)
    half = ALICE.sign(one)
    whole = BOB.sign(half)
    values = [one, two, half, whole, ALICE.sign(two), profile, ALICE.sign(profile)]
    values += [_finalised(whole, VAULT), _finalised(ALICE.sign(profile), PROFILE)]
    values += [replace(one, xpubs=tuple((key.xpub, key.origin) for key in VAULT.cosigners))]
    values += [with_input(one, 0, non_witness_utxo=None), with_input(one, 0, sighash_type=1)]
    values += [with_output(one, 1, derivations={}), with_input(one, 0, redeem_script=b"\x00\x20" + bytes(32))]
    for data in (
        b"hello",
        *(bytes.fromhex(vector["hex"]) for vector in records("tokens/payloads_valid.json")),
    ):
        values.append(_with_data(one, data))
    for value in values:
        yield value.to_bytes()
    yield one.to_bytes()[:-1]


def _finalised(psbt: Psbt, policy: Policy) -> Psbt:
    witness = finalise(psbt, policy).inputs[0].witness
    return with_input(psbt, 0, partial_signatures={}, final_script_witness=witness)


def _with_data(psbt: Psbt, data: bytes) -> Psbt:
    script = TxOut(sats(0), op_return_script(data)).script_pubkey
    return with_outputs(psbt, *psbt.outputs, replace(psbt.outputs[0], amount=sats(0), script_pubkey=script))


TARGET = Target("psbt", check, seeds, largest=8192, mutator=mutate)
