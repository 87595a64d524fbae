"""CPT-1, tokens anchored to Bitcoin: the bytes in a transaction, the bytecode they commit to, and both in
words.
"""

from multisig.tokens.amounts import (
    MAX_DECIMALS,
    MAX_TOKEN_AMOUNT,
    TokenAmount,
    check_supplies,
    format_units,
    token_amount,
)
from multisig.tokens.bytecode import (
    MAX_BYTECODE_BYTES,
    MAX_WHITELIST,
    TEMPLATE_VERSION,
    Bytecode,
    bytecode_hash,
    check_deployment,
    parse_bytecode,
)
from multisig.tokens.payload import (
    MAX_PAYLOAD_BYTES,
    Call,
    Deploy,
    Function,
    Payload,
    decode_payload,
    encode_payload,
    is_token_payload,
    payload_parts,
    token_of,
    token_of_script,
    token_script,
)
from multisig.tokens.words import TokenWords, listed_addresses, token_words

__all__ = [
    "MAX_BYTECODE_BYTES",
    "MAX_DECIMALS",
    "MAX_PAYLOAD_BYTES",
    "MAX_TOKEN_AMOUNT",
    "MAX_WHITELIST",
    "TEMPLATE_VERSION",
    "Bytecode",
    "Call",
    "Deploy",
    "Function",
    "Payload",
    "TokenAmount",
    "TokenWords",
    "bytecode_hash",
    "check_deployment",
    "check_supplies",
    "decode_payload",
    "encode_payload",
    "format_units",
    "is_token_payload",
    "listed_addresses",
    "parse_bytecode",
    "payload_parts",
    "token_amount",
    "token_of",
    "token_of_script",
    "token_script",
    "token_words",
]
