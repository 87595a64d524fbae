"""The values of the core, made by the journal, the account and the configuration."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from custody.schemas.proposals import Advice, ProposalStatus, TroubleKind, TxType
from multisig import FeeRate, MultisigError, Network, OriginKey, OutPoint, Psbt, Sats, Transaction, Vault
from multisig.tokens import Bytecode
from signerd.core.places import Places
from signerd.core.rules.values import NO_RULES, Rules, Spent
from signerd.core.states import DECIDED_YES, UNDECIDED, ProposalMove, State, advance
from signerd.core.tokens import ModelScreen, TokenClaim

# Raises MultisigError. Cached: it is asked for several times in turn.
psbt_of = lru_cache(maxsize=4)(Psbt.parse)


def tx_of(psbt: bytes) -> Transaction | None:
    """The unsigned transaction; None for a malformed PSBT."""
    try:
        return psbt_of(psbt).tx
    except MultisigError:
        return None


def identity_of(psbt: bytes) -> str:
    """The id of the unsigned transaction, whatever signatures the PSBT has."""
    tx = tx_of(psbt)
    return "unreadable:" + hashlib.sha256(psbt).hexdigest() if tx is None else tx.txid


def parts_of(psbt: bytes) -> int:
    """The number of inputs and outputs, by which the work of judging it grows; 0 for a malformed PSBT."""
    tx = tx_of(psbt)
    return 0 if tx is None else len(tx.inputs) + len(tx.outputs)


@dataclass(frozen=True)
class Trouble:
    """``words``: the platform's. ``since``: RFC 3339 UTC. ``txid``: the transaction that spends one of its
    coins; ``psbt_id``: its proposal, if there is one.
    """

    kind: TroubleKind
    advice: Advice
    words: str
    since: str
    txid: str | None = None
    psbt_id: str | None = None

    @property
    def sentence(self) -> str:
        return f"{KINDS[self.kind]} {ADVICE[self.advice]}"


KINDS: Mapping[TroubleKind, str] = MappingProxyType(
    {
        TroubleKind.CONFLICT: "Another transaction spends a coin of it: only one of the two can confirm.",
        TroubleKind.DOUBLE_SPENT: "Another transaction has spent a coin of it: it can never confirm.",
        TroubleKind.COIN_MISSING: "A deposit that it spends is not in the chain any more.",
        TroubleKind.NOT_IN_MEMPOOL: "It was sent, and the mempool has dropped it.",
        TroubleKind.FEE_TOO_LOW: "Its fee is below what nodes take now.",
        TroubleKind.SLOW: "It has waited for hours, and its fee is low.",
    }
)
ADVICE: Mapping[Advice, str] = MappingProxyType(
    {
        "bump": "A new version with a higher fee helps: you are asked as soon as it is proposed.",
        "wait": "No new version can be made of it now: wait.",
        "cancel": "It waits for that deposit to return, or until it is cancelled at the platform.",
        "resend": "The platform sends it again by itself.",
        "none": "If it still has to be paid, it is proposed anew.",
    }
)


@dataclass(frozen=True)
class DeclineClaim:
    """A signer's decline by the platform's word. ``at``: RFC 3339 UTC, if it is told."""

    by: str
    reason: str
    at: str | None


@dataclass(frozen=True)
class Imported:
    """The importer of a PSBT that is not the platform's. ``app_id`` None: the person.

    ``by``: the importer's label. ``expires_at``: Unix seconds, after which it can no longer be approved.
    ``paid``, ``fee`` (satoshis) and ``title`` (without address book names): for lists, from the review at the
    import.
    """

    by: str
    app_id: str | None
    expires_at: int
    paid: int | None = None
    fee: int | None = None
    title: str | None = None


@dataclass(frozen=True)
class Snapshot:
    """The platform's last state of a proposal. Nothing of it is trusted without a check.

    ``call``: its description of the token data; ``contract_uid``: its number of the token. ``created_at``
    (RFC 3339 UTC) and ``created_by_name`` may be empty. ``declines``: of any signer, also of this one.
    ``why_ended``: what somebody wrote when they ended it. ``imported``: set for an imported PSBT, of which
    only the PSBT and the claimed vault are known; ``vault_id`` is empty where that is no vault.
    """

    psbt_id: str
    workspace_id: int
    workspace_network: str  # "mainnet" or "testnet", as the platform calls them
    vault_id: str
    kind: TxType
    status: ProposalStatus
    psbt: bytes
    created_by: str
    required: int
    collected: int = 0
    recipients: tuple[str, ...] = ()
    amounts: tuple[int, ...] = ()
    op_return: str | None = None
    fee: int = 0
    txid_expected: str = ""
    description: str = ""
    txid: str | None = None
    confirmations: int = 0
    replaces: str | None = None
    imported: Imported | None = None
    call: TokenClaim | None = None
    contract_uid: int | None = None
    created_by_name: str = ""
    created_at: str = ""
    trouble: Trouble | None = None
    declines: tuple[DeclineClaim, ...] = ()
    why_ended: str = ""

    @property
    def is_of_token(self) -> bool:
        """Whether the platform calls it a token deployment or call."""
        return self.kind in (TxType.DEPLOY, TxType.CALL)

    @property
    def is_of_profile(self) -> bool:
        """Whether it was imported and spends from no pinned vault, so at most from the profile."""
        return self.imported is not None and not self.vault_id


@dataclass(frozen=True)
class Approval:
    """The person's approval: bound to the digest of what was shown (S24), with the acknowledged warnings."""

    digest: str
    acknowledged: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SignedPsbt:
    """The signed PSBT as it is submitted: always these bytes with this key."""

    psbt: bytes = field(repr=False)
    idempotency_key: str


@dataclass(frozen=True)
class Decline:
    reason: str
    delivered: bool = False


@dataclass(frozen=True)
class Record:
    """The record of a proposal. ``identity`` is the txid of the unsigned transaction as first seen.

    ``exported``: the PSBT that was exported for a device without a cable; it may be signed. ``let_go``: it
    ended long ago and is no longer followed.
    """

    snapshot: Snapshot
    state: State
    identity: str
    approval: Approval | None = None
    signature: SignedPsbt | None = None
    decline: Decline | None = None
    reason: str = ""
    alarm: str = ""
    exported: bytes | None = field(default=None, repr=False)
    let_go: bool = False

    @property
    def psbt_id(self) -> str:
        return self.snapshot.psbt_id

    def moved(self, move: ProposalMove, **changes: Any) -> "Record":
        """In the state after ``move``, with these changes. Raises IllegalEvent as ``advance``."""
        return replace(self, state=advance(self.state, move), **changes)


class Work(Enum):
    """``SUBMIT`` and ``TELL_DECLINE`` are safe to repeat: the same bytes under the same key."""

    ASK_DEVICE = auto()
    SUBMIT = auto()
    TELL_DECLINE = auto()


def todo(record: Record) -> Work | None:
    """What is to be done follows from the stored record alone: a restart does the same. In SIGNING and
    SUBMITTING it is being done; ``Restarted`` leads out of both.
    """
    match record.state:
        case State.WAITING_DEVICE:
            return Work.ASK_DEVICE
        case State.SIGNED | State.KEPT if record.signature is not None:
            return Work.SUBMIT
        case State.DECLINED if record.decline is not None and not record.decline.delivered:
            return Work.TELL_DECLINE
        case _:
            return None


@dataclass(frozen=True)
class OwnKey:
    """An account of this signer's device, read from the device itself when it was registered."""

    key: OriginKey
    purpose: str  # "vault" or "profile"
    account: int


@dataclass(frozen=True)
class FormerKey:
    """A key of ours whose device was replaced. ``replaced``: when, if the journal has it. ``lost``: so the
    platform calls it.
    """

    own: OwnKey
    replaced: datetime | None = None
    platform_key_id: str = ""
    lost: bool = False


@dataclass(frozen=True)
class Pin:
    """A vault that the person compared with the other signers. It never changes (S16)."""

    vault_id: str
    workspace_id: int
    name: str
    vault: Vault
    own_key: OriginKey


@dataclass(frozen=True)
class VaultClaim:
    """What the platform says about a vault; None for a field that it has not shown."""

    vault_id: str
    workspace_id: int
    name: str
    descriptor: str
    threshold: int | None = None
    signers: int | None = None
    first_address: str | None = None
    replaced_by: str | None = None


@dataclass(frozen=True)
class Neighbour:
    """Another proposal that spends the same coins, pays the same, or is replaced by this one.

    ``outpoints``, ``payments`` (script, satoshis): of its coins and outputs those that the judged proposal
    has too; of the coins one is enough. ``psbt``: as signed here, else the platform's; empty
    where nothing of it is compared. ``txid``: of the unsigned transaction. ``signed_at``: when the signature
    was recorded, or when it was ``exported``. ``collected``: the most signatures that the platform has shown,
    of ``required``. ``is_proof``: it is a message (BIP-322), which can never be mined.
    """

    psbt_id: str
    state: State
    signed: bool
    outpoints: frozenset[OutPoint]
    payments: frozenset[tuple[bytes, int]]
    psbt: bytes = field(default=b"", repr=False)
    signed_at: datetime | None = None
    collected: int = 0
    required: int = 0
    exported: bool = False
    txid: str = ""
    is_proof: bool = False

    @property
    def may_confirm(self) -> bool:
        """Whether our signature may have left this machine, or the platform says that others completed it.

        This never becomes false. Only the platform could say that the transaction will never confirm, or has
        confirmed, and an attacker who wants to be paid twice would say just that (S6).
        """
        if self.is_proof:
            return False
        return self.signed or self.exported or self.state in DECIDED_YES or self.state is State.SIGNING

    @property
    def is_open(self) -> bool:
        """Whether it is not signed here and the person may still be asked."""
        return not self.is_proof and not self.may_confirm and self.state in OPEN_STATES


@dataclass(frozen=True)
class Uncompared:
    """How many more neighbours there are than are compared, by what they have in common with the proposal.

    ``rivals``: may confirm, and spend a coin of it. ``open``: the same, and the person may still be asked.
    ``payments``: may confirm, and have an output of it. ``others``: have an output of it, and signatures of
    others.
    """

    rivals: int = 0
    open: int = 0
    payments: int = 0
    others: int = 0


@dataclass(frozen=True)
class Unfollowed:
    """Another proposal of the vault that others signed, and that never awaited this machine (S27).

    ``collected``: as for a neighbour. ``tx``: without witnesses.
    """

    psbt_id: str
    status: ProposalStatus
    collected: int
    required: int
    tx: Transaction = field(repr=False)

    @cached_property
    def outpoints(self) -> frozenset[OutPoint]:
        return frozenset(item.outpoint for item in self.tx.inputs)

    @cached_property
    def payments(self) -> frozenset[tuple[bytes, int]]:
        """Every output, as (script, satoshis)."""
        return frozenset((output.script_pubkey, int(output.amount)) for output in self.tx.outputs)


OPEN_STATES = frozenset(UNDECIDED) - {State.REFUSED}


# Bitcoin Core's -maxtxfee default: 0.10 BTC.
DEFAULT_MAX_FEE = Sats(10_000_000)
# Above every fee rate the chain has ever asked for; Trezor refuses outright at 2,000 sat/vB.
DEFAULT_MAX_FEE_RATE = FeeRate(1_000_000)
# A Coldcard refuses a fee of 10 % or more of the outputs and warns from 5 %.
DEFAULT_MAX_FEE_PERCENT = 10
DEFAULT_WARN_FEE_PERCENT = 5


@dataclass(frozen=True)
class SigningLimits:
    """The limits of fees (S7). ``*_percent`` is of the sum of all outputs."""

    max_fee: Sats = DEFAULT_MAX_FEE
    max_fee_rate: FeeRate = DEFAULT_MAX_FEE_RATE
    max_fee_percent: int = DEFAULT_MAX_FEE_PERCENT
    warn_fee_percent: int = DEFAULT_WARN_FEE_PERCENT


@dataclass(frozen=True)
class ReviewContext:
    """Everything that a review of one proposal depends on.

    ``claim``: what the platform says of the vault now. ``lowered``: the checks that the configuration lowers.
    ``spent``: what was signed within 24 hours. ``uncompared``: beyond
    ``neighbours``. ``unfollowed``: proposals that others signed and that pay the same. ``vault_changes``:
    changes of the pinned vault that the person has not looked at. ``moment``: the day; None where the time is
    unknown. ``former_keys``: of devices that were replaced. ``revoked``: the sentence about a revocation of
    the registered key, or empty. ``lapsed``: an imported PSBT can no longer be approved. ``token``: the
    proven token of the payload. ``pins``: every pinned vault, if that token's whitelist may name one, or the
    vault is said to be replaced. ``places``: the known addresses, by ``places.policy_code``. ``resembled``:
    addresses that it pays, each with the one paid or named before that it only resembles. ``screen``: of the
    device that was last seen with our key of the vault, or None.
    """

    network: Network
    limits: SigningLimits
    pin: Pin | None
    claim: VaultClaim | None
    own_keys: tuple[OwnKey, ...]
    neighbours: tuple[Neighbour, ...] = ()
    uncompared: Uncompared = Uncompared()
    unfollowed: tuple[Unfollowed, ...] = ()
    lowered: frozenset[str] = frozenset()
    rules: Rules = NO_RULES
    spent: tuple[Spent, ...] = ()
    moment: datetime | None = None
    vault_changes: tuple[str, ...] = ()
    former_keys: tuple[FormerKey, ...] = ()
    revoked: str = ""
    lapsed: bool = False
    token: Bytecode | None = None
    pins: tuple[Pin, ...] = ()
    places: Mapping[str, Places] = field(default_factory=dict)
    resembled: Mapping[str, str] = field(default_factory=dict)
    screen: ModelScreen | None = None
