"""Vaults and profiles of the project's own vectors, and hypothesis strategies for them."""

import json
from functools import cache

from hypothesis import strategies as st

from multisig import MAX_MONEY, Network, OriginKey, OutPoint, Profile, Sats, Transaction, TxIn, TxOut, Vault
from tests.support.vectors import OWN

NETWORKS = st.sampled_from(list(Network))
AMOUNTS = st.integers(0, MAX_MONEY).map(Sats)
UINT32 = st.integers(0, 2**32 - 1)


@cache
def _vectors() -> dict[str, dict]:
    vectors = json.loads((OWN / "policies.json").read_text(encoding="utf-8"))["vectors"]
    return {vector["id"]: vector for vector in vectors}


def vault(name: str = "2-of-3-testnet4") -> Vault:
    vector = _vectors()[name]
    network = Network(vector["network"])
    keys = tuple(OriginKey.parse(key, network) for key in vector["keys"])
    return Vault(network, vector["threshold"], keys)


def profile(name: str = "profile-testnet4") -> Profile:
    vector = _vectors()[name]
    network = Network(vector["network"])
    return Profile(network, OriginKey.parse(vector["key"], network))


def outpoints() -> st.SearchStrategy[OutPoint]:
    return st.builds(OutPoint, st.binary(min_size=32, max_size=32).map(bytes.hex), UINT32)


def transactions() -> st.SearchStrategy[Transaction]:
    scripts = st.binary(max_size=300)
    witnesses = st.lists(st.binary(max_size=300), max_size=4).map(tuple)
    inputs = st.builds(TxIn, outpoints(), UINT32, scripts, witnesses)
    outputs = st.builds(TxOut, AMOUNTS, scripts)
    return st.builds(
        Transaction,
        UINT32,
        st.lists(inputs, min_size=1, max_size=5).map(tuple),
        st.lists(outputs, max_size=5).map(tuple),
        UINT32,
    )
