"""A policy and its payments as Trezor's messages, read back as a virtual device reads them."""

from hypothesis import example, given
from hypothesis import strategies as st
from trezorlib import messages as theirs
from trezorlib.mapping import DEFAULT_MAPPING

from device_simulators.trezor import messages
from device_simulators.trezor.wire import decode
from firmware_bridge.hwi_client.trezor.messages import PolicyMessages, _previous
from firmware_bridge.makers.trezor import takes
from multisig import RECEIVE, Network, decode_address, op_return_script, parse_op_return, sats
from multisig.psbt import PsbtOutput
from multisig.script import p2pkh, p2sh, p2tr, p2wpkh, parse_multisig_script, witness_output
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from tests.conformance.rigs import NETWORK, SEEDS, make_vault
from tests.support.driver import policy_args

VAULT = make_vault()
POLICY = PolicyMessages(policy_args(VAULT), SEEDS[0].fingerprint.hex, NETWORK)
UINT32 = st.integers(0, 0xFFFF_FFFF)
HASH = st.binary(min_size=20, max_size=20)
POINT = bytes.fromhex("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
SCRIPTS = st.one_of(
    HASH.map(p2pkh),
    HASH.map(p2sh),
    st.just(p2wpkh(b"\x02" + POINT)),
    st.just(p2tr(POINT)),
    st.binary(min_size=32, max_size=32).map(lambda program: witness_output(0, program)),
    st.binary(min_size=1, max_size=80).map(op_return_script),
)


def sent(part):
    """A part of a transaction, as the device reads it."""
    return decode(messages.TxAck, DEFAULT_MAPPING.encode(theirs.TxAck(tx=part))[1]).tx


def test_a_vaults_keys_are_in_the_order_of_the_script_and_that_is_declared():
    claim = theirs.TxOutputType(amount=1, **POLICY.address(RECEIVE, 7))
    (output,) = sent(theirs.TransactionType(outputs=[claim])).outputs
    accounts = {key.xpub.public_key: key.xpub for key in VAULT.cosigners}
    quorum = output.multisig
    keys = [accounts[one.node.public_key].derive_public_key(*one.address_n) for one in quorum.pubkeys]
    assert (quorum.m, tuple(keys)) == parse_multisig_script(VAULT.witness_script(RECEIVE, 7))
    assert quorum.pubkeys_order == theirs.MultisigPubkeysOrder.LEXICOGRAPHIC


@given(script=SCRIPTS)
@example(script=op_return_script(bytes(76)))
def test_an_output_says_its_script_and_nothing_else(script):
    assert takes(script)
    written = POLICY._output(PsbtOutput(amount=sats(7), script_pubkey=script))
    (output,) = sent(theirs.TransactionType(outputs=[written])).outputs
    assert (output.amount, output.address_n, output.multisig) == (7, (), None)
    if output.address is None:
        assert output.op_return_data == parse_op_return(script)
    else:
        assert output.op_return_data is None
        assert decode_address(output.address, Network.TESTNET4) == script


@given(version=UINT32, locktime=UINT32, sequence=UINT32, script_sig=st.binary(max_size=20))
def test_a_previous_transaction_is_sent_as_it_is(version, locktime, sequence, script_sig):
    spent = TxIn(OutPoint("0a" * 31 + "0b", 3), sequence, script_sig)
    tx = sent(_previous(Transaction(version, (spent,), (TxOut(sats(7), b"\x51"),), locktime)))
    (read,), (paid,) = tx.inputs, tx.bin_outputs
    outpoint = OutPoint(read.prev_hash.hex(), read.prev_index)
    again = TxIn(outpoint, read.sequence, read.script_sig)
    assert (tx.version, tx.lock_time, again) == (version, locktime, spent)
    assert (paid.amount, paid.script_pubkey) == (7, b"\x51")
