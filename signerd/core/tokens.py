"""What this machine knows of tokens: only what bytes prove (docs/understand/tokens.md), and how much of it
a device shows (S28).

A contract's id is the txid of its deployment, which carries the hash of the bytecode. These two prove the
token's name, decimals, supplies and first owner; the platform's word is not needed for any of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from multisig import InvalidTransaction, MultisigError, Network, Psbt, Transaction, encode_address
from multisig.tokens import (
    Bytecode,
    Call,
    Deploy,
    Payload,
    bytecode_hash,
    check_deployment,
    encode_payload,
    format_units,
    parse_bytecode,
    payload_parts,
    token_of_script,
)
from signerd.core.text import said

OP_RETURN = b"\x6a"


class NotProven(Exception):
    """The bytes do not prove the token. The message is a sentence that says why."""


Facts = Mapping[str, str]
"""By the names of the platform's ``decoded_call``, each as text."""


@dataclass(frozen=True)
class TokenClaim:
    """What the platform says that a proposal's data says: by the names of ``Facts``, without what it leaves
    out.
    """

    told: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Published:
    """What is published of a token: the bytecode, and the deployment once there is one. Nothing of it is
    believed.
    """

    bytecode: bytes = field(repr=False)
    deployment: bytes | None = field(default=None, repr=False)


def payload_of(psbt: Psbt) -> Payload | None:
    """The first payload that a transaction carries; None where there is none, or it cannot be decoded."""
    for output in psbt.tx.outputs:
        try:
            payload = token_of_script(output.script_pubkey)
        except MultisigError:
            return None
        if payload is not None:
            return payload
    return None


def takes_back(psbt: Psbt) -> bool:
    """Whether it carries no data at all: the version of a token's transaction that stops it."""
    return not any(output.script_pubkey.startswith(OP_RETURN) for output in psbt.tx.outputs)


def payload_of_bytes(psbt: bytes) -> Payload | None:
    """The same of a PSBT that may be no PSBT."""
    try:
        return payload_of(Psbt.parse(psbt))
    except MultisigError:
        return None


def prove_blob(digest: bytes, blob: bytes) -> Bytecode:
    """The bytecode with this hash. Raises NotProven."""
    if bytecode_hash(blob) != digest:
        raise NotProven("its bytecode is not the one whose hash stands in the deployment.")
    try:
        return parse_bytecode(blob)
    except MultisigError as error:
        raise NotProven(said(error)) from error


def prove_token(contract_id: str, published: Published) -> Bytecode:
    """The token of this contract: its deployment is the transaction of that id, and commits to the bytecode.

    That a chain took the deployment, and who owns the token by now, is not in these bytes. Raises NotProven.
    """
    if published.deployment is None:
        raise NotProven("its deployment is not shown.")
    deploy = _deployment(contract_id, published.deployment)
    bytecode = prove_blob(deploy.bytecode_hash, published.bytecode)
    try:
        check_deployment(deploy, bytecode)
    except MultisigError as error:
        raise NotProven(said(error)) from error
    return bytecode


def _deployment(contract_id: str, raw: bytes) -> Deploy:
    try:
        transaction = Transaction.parse(raw)
    except InvalidTransaction as error:
        raise NotProven(f"what is shown as its deployment cannot be read: {said(error)}") from error
    if transaction.txid != contract_id:
        raise NotProven("what is shown as its deployment is another transaction.")
    # As on chain: beside another data output, or with money in it, a payload has no effect.
    carriers = [output for output in transaction.outputs if output.script_pubkey.startswith(OP_RETURN)]
    if len(carriers) != 1 or carriers[0].amount:
        raise NotProven("its deployment has no effect on chain.")
    try:
        payload = token_of_script(carriers[0].script_pubkey)
    except MultisigError as error:
        raise NotProven(said(error)) from error
    if not isinstance(payload, Deploy):
        raise NotProven("the transaction with its id deploys no token.")
    return payload


def facts_of(payload: Payload, network: Network, token: Bytecode | None) -> Facts:
    """All that a payload's bytes say, and its token's where that is proven: what a claim is compared with."""
    common = {"data_hex": encode_payload(payload).hex()}
    if isinstance(payload, Deploy):
        # What the payload says by its hash alone.
        listed = (
            {}
            if token is None
            else {"whitelist_count": str(len(token.whitelist)), "whitelist_hash": token.whitelist_hash.hex()}
        )
        return {
            **common,
            **listed,
            "function": "deploy",
            "ticker": payload.ticker,
            "decimals": str(payload.decimals),
            "total_supply_raw": str(payload.total_supply),
            "total_supply": format_units(payload.total_supply, payload.decimals),
            "max_supply_raw": str(payload.max_supply),
            "max_supply": format_units(payload.max_supply, payload.decimals),
            "whitelist_enabled": flag(payload.whitelist_enabled),
            "bytecode_hash": payload.bytecode_hash.hex(),
        }
    facts = {**common, "function": payload.function.wire_name, "contract_id": payload.contract_id}
    if payload.amount is not None:
        facts["amount_raw"] = str(payload.amount)
    if payload.address is not None:
        facts["address"] = encode_address(payload.address, network) or ""
    if token is not None:
        facts |= {"ticker": token.ticker, "decimals": str(token.decimals)}
        if payload.amount is not None:
            facts["amount"] = format_units(payload.amount, token.decimals)
    return facts


def flag(value: bool) -> str:
    return "yes" if value else "no"


def subject_of(payload: Payload) -> str:
    """What must be known to put a payload in words: a contract's id, or the hash of what is deployed."""
    return payload.contract_id if isinstance(payload, Call) else payload.bytecode_hash.hex()


# Hashes: of what any screen that is known shows of them, 27 bytes at least, no two tokens have the same.
HASHES = frozenset({"contract", "bytecode hash"})


@dataclass(frozen=True)
class Screen:
    """``name``: the model, as the person knows it. ``whole``: data of up to so many bytes is shown whole;
    None: not known.

    ``first``: of longer data so many bytes are shown. ``no_proof``, ``no_funds``: why it signs no message of
    a vault (BIP-322), and none that names coins; empty where it does.
    """

    name: str
    whole: int | None
    first: int = 0
    no_proof: str = ""
    no_funds: str = ""

    def shown(self, size: int) -> int:
        """How many of so many bytes the person sees; of what is not known none."""
        if self.whole is None:
            return 0
        return size if size <= self.whole else self.first

    def why_no_message(self, coins: int) -> str:
        return self.no_funds if coins else self.no_proof


def hidden_parts(payload: Payload, screen: Screen | None) -> tuple[str, ...]:
    """The parts of a payload that do not stand whole on the screen, in their order; without a device all of
    them.
    """
    parts = payload_parts(payload)
    size = sum(len(data) for _name, data in parts)
    shown, end, hidden = 0 if screen is None else screen.shown(size), 0, []
    for name, data in parts:
        end += len(data)
        if end > shown:
            hidden.append(name)
    return tuple(hidden)


def screen_words(payload: Payload, screen: Screen | None) -> str:
    """What the person will and will not see, before the device is asked."""
    size, hidden = sum(len(data) for _name, data in payload_parts(payload)), hidden_parts(payload, screen)
    if screen is None:
        return (
            "This machine has not seen your device yet, so that it does not know how much of this data the "
            "screen "
            "shows."
        )
    if screen.whole is None:
        return f"It is not known how much of this data your {screen.name} shows: take nothing of it as shown."
    if not hidden:
        return (
            f"Your {screen.name} cannot read a token's data: it shows all {size} bytes as hex. "
            "Compare them digit for digit."
        )
    return (
        f"Your {screen.name} shows the first {screen.shown(size)} of the {size} bytes as hex, then dots. Not "
        "on its screen: "
        f"{_listed(hidden)}. It signs them all the same."
    )


def _listed(parts: tuple[str, ...]) -> str:
    *before, last = (f"the {part}" for part in parts)
    return f"{', '.join(before)} and {last}" if before else last
