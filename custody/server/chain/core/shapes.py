"""Reading a node's JSON: each value has the one form it must have, or the answer is not believed."""

import re
from collections.abc import Mapping
from typing import Any

from custody.server.domain.errors import ChainUnavailable
from multisig.errors import InvalidTransaction
from multisig.transaction import Transaction

_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


def garbled(what: str) -> ChainUnavailable:
    return ChainUnavailable(
        f"The node's answer makes no sense ({what}). Check its address, and what is in between."
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
