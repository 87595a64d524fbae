"""Token payloads in an OP_RETURN, and the bytecode that a deployment commits to."""

from collections.abc import Iterator
from typing import Any

from fuzz.records import records
from fuzz.target import Target, require
from multisig import MultisigError
from multisig.canonical_json import JsonError, canonical_json, parse_canonical
from multisig.script import op_return_script
from multisig.tokens import (
    Deploy,
    bytecode_hash,
    check_deployment,
    decode_payload,
    encode_payload,
    parse_bytecode,
    token_of_script,
    token_script,
)

_SCRIPT, _BLOB = 0, 1


def check(data: bytes) -> None:
    """The first byte selects the parser; each value has one form, and only MultisigError is raised."""
    if not data:
        return
    kind, rest = data[0] % 3, data[1:]
    if kind == _SCRIPT:
        _check_script(rest)
    elif kind == _BLOB:
        _check_blob(rest)
    else:
        _check_payload(rest)


def _check_payload(data: bytes) -> None:
    try:
        payload = decode_payload(data)
    except MultisigError:
        return
    require(encode_payload(payload) == data, "one payload has two forms")
    require(token_script(payload) == op_return_script(data), "another script than the payload's")


def _check_script(script: bytes) -> None:
    try:
        payload = token_of_script(script)
    except MultisigError:
        return
    require(payload is None or token_script(payload) == script, "one payload has two scripts")


def _check_blob(blob: bytes) -> None:
    try:
        value = parse_canonical(blob)
    except JsonError:
        return
    require(canonical_json(value) == blob, "one value has two texts")
    try:
        bytecode = parse_bytecode(blob)
    except MultisigError:
        return
    require(bytecode.blob == blob, "one bytecode has two blobs")
    deploy = bytecode.deployment
    require(isinstance(deploy, Deploy) and deploy.bytecode_hash == bytecode_hash(blob), "another hash")
    check_deployment(deploy, bytecode)
    require(decode_payload(encode_payload(deploy)) == deploy, "a deployment that cannot be read back")


def seeds() -> Iterator[bytes]:
    for name in ("payloads_valid", "payloads_invalid"):
        for vector in records(f"tokens/{name}.json"):
            yield b"\x02" + bytes.fromhex(vector["hex"])
    for vector in records("tokens/payloads_valid.json"):
        yield b"\x00" + op_return_script(bytes.fromhex(vector["hex"]))
    for name in ("bytecode_valid", "bytecode_invalid"):
        for vector in records(f"tokens/{name}.json"):
            yield b"\x01" + _blob(vector)


def _blob(vector: dict[str, Any]) -> bytes:
    # Some vectors are not text.
    given: str | None = vector.get("blob")
    return bytes.fromhex(vector["blob_hex"]) if given is None else given.encode("utf-8", "surrogatepass")


TARGET = Target("tokens", check, seeds)
