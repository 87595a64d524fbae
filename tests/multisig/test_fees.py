import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import (
    OutPoint,
    Sats,
    Transaction,
    TxIn,
    TxOut,
    estimate_vsize,
    input_weight,
    multisig_script,
    op_return_script,
    output_weight,
    p2wpkh,
    p2wsh,
    vault_input_weight,
)
from tests.support.policies import profile, vault

KEYS = [b"\x02" + bytes([i] * 32) for i in range(1, 16)]
P2WSH, P2WPKH, DATA = p2wsh(b""), p2wpkh(KEYS[0]), op_return_script(bytes(80))
QUORUMS = st.integers(1, 15).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n)))


# The three figures of the design's rules.
@pytest.mark.parametrize(
    ("outputs", "vsize"), [([P2WSH, DATA], 250), ([P2WSH, DATA, P2WPKH], 281), ([P2WSH, DATA, P2WSH], 293)]
)
def test_known_sizes_of_2_of_3(outputs, vsize):
    assert estimate_vsize(vault(), 1, outputs) == vsize


def signed(inputs, outputs, witness):
    spends = tuple(TxIn(OutPoint("ab" * 32, vout), 0, b"", witness) for vout in range(inputs))
    return Transaction(2, spends, tuple(TxOut(Sats(1), script) for script in outputs), 0)


@given(st.integers(1, 300), st.lists(st.sampled_from([P2WSH, P2WPKH, DATA]), min_size=1, max_size=300))
def test_the_estimate_is_the_size_of_the_longest_signed_transaction(inputs, outputs):
    policy = vault()
    witness = (b"", bytes(72), bytes(72), policy.witness_script(0, 0))
    assert estimate_vsize(policy, inputs, outputs) == signed(inputs, outputs, witness).vsize
    single = profile()
    assert estimate_vsize(single, inputs, outputs) == signed(inputs, outputs, (bytes(72), KEYS[0])).vsize


@given(QUORUMS)
def test_every_quorum(quorum):
    m, n = quorum
    witness = (b"", *[bytes(72)] * m, multisig_script(m, KEYS[:n]))
    with_one, with_two = signed(1, [P2WSH], witness), signed(2, [P2WSH], witness)
    assert vault_input_weight(m, n) == with_two.weight - with_one.weight


def test_weights():
    assert (input_weight(vault()), input_weight(profile())) == (vault_input_weight(2, 3), 272)
    assert output_weight(P2WSH) == 4 * 43


@pytest.mark.parametrize(("m", "n"), [(0, 1), (2, 1), (1, 16), (0, 0)])
def test_impossible_quorums(m, n):
    with pytest.raises(ValueError, match="quorum"):
        vault_input_weight(m, n)
