"""Tokens and payloads for tests: fixed ones, any valid one (hypothesis),
and a payload in the form of the vectors.
"""

from hypothesis import strategies as st

from multisig.tokens import MAX_TOKEN_AMOUNT, Bytecode, Deploy, Function, TokenCall

OWNER = bytes.fromhex("0020") + bytes(range(32))
CONTRACT = "5f0c1a9b7d3e2846b1c4d5e6f70812233445566778899aabbccddeeff0011223"

NAME_CHARACTERS = st.characters(
    codec="utf-8", categories=["Lu", "Ll", "Lo", "Nd", "Sc"], include_characters='"\\<&/.'
)


def bytecode(**changes):
    fields = {
        "name": "Gold of the House",
        "ticker": "GOLD",
        "decimals": 2,
        "total_supply": 100_000,
        "max_supply": 500_000,
        "whitelist_enabled": False,
        "icon": "https://example.com/gold.png",
        "whitelist": (),
        "owner_script": OWNER,
    }
    return Bytecode(**(fields | changes))


def call(function, **arguments):
    return TokenCall(contract_id=CONTRACT, function=function, **arguments)


def _holder(before, length, after):
    return st.binary(min_size=length, max_size=length).map(lambda data: before + data + after)


HOLDERS = st.one_of(
    _holder(b"\x00\x14", 20, b""),
    _holder(b"\x00\x20", 32, b""),
    _holder(b"\x51\x20", 32, b""),
    _holder(b"\x76\xa9\x14", 20, b"\x88\xac"),
    _holder(b"\xa9\x14", 20, b"\x87"),
)
# Every length of LEB128 is as likely as any other.
AMOUNTS = st.integers(1, 63).flatmap(lambda bits: st.integers(2 ** (bits - 1), 2**bits - 1))
TICKERS = st.from_regex(r"[A-Z][A-Z0-9]{0,11}", fullmatch=True)
HASHES = st.binary(min_size=32, max_size=32)
SUPPLIES = st.tuples(AMOUNTS, st.integers(0, MAX_TOKEN_AMOUNT)).map(
    lambda pair: {"max_supply": pair[0], "total_supply": pair[1] % (pair[0] + 1)}
)
DEPLOYS = st.builds(
    lambda supplies, **rest: Deploy(**supplies, **rest),
    SUPPLIES,
    bytecode_hash=HASHES,
    ticker=TICKERS,
    decimals=st.integers(0, 18),
    whitelist_enabled=st.booleans(),
)
CALLS = st.builds(
    lambda function, contract, amount, holder: TokenCall(
        contract_id=contract.hex(),
        function=function,
        amount=amount if function.takes_amount else None,
        address=holder if function.takes_address else None,
    ),
    st.sampled_from(Function),
    HASHES,
    AMOUNTS,
    HOLDERS,
)
PAYLOADS = st.one_of(DEPLOYS, CALLS)
BYTECODES = st.builds(
    lambda supplies, whitelist, **rest: Bytecode(**supplies, whitelist=tuple(sorted(whitelist)), **rest),
    SUPPLIES,
    st.sets(HOLDERS, max_size=6),
    name=st.text(NAME_CHARACTERS, min_size=1, max_size=64),
    ticker=TICKERS,
    decimals=st.integers(0, 18),
    whitelist_enabled=st.booleans(),
    icon=st.sampled_from(["", "https://example.com/a.png", "ipfs://bafy/a_b~c?d=e&f=%20"]),
    owner_script=HOLDERS,
)


def as_vector(payload):
    """A payload in the form of tests/vectors/tokens/payloads_valid.json, without id and hex."""
    if isinstance(payload, Deploy):
        return {
            "kind": "deploy",
            "bytecode_hash": payload.bytecode_hash.hex(),
            "ticker": payload.ticker,
            "decimals": payload.decimals,
            "total_supply": str(payload.total_supply),
            "max_supply": str(payload.max_supply),
            "whitelist_enabled": payload.whitelist_enabled,
        }
    return {
        "kind": "call",
        "function": payload.function.wire_name,
        "contract_id": payload.contract_id,
        "amount": None if payload.amount is None else str(payload.amount),
        "script": None if payload.address is None else payload.address.hex(),
    }
