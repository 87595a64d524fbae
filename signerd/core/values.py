"""What the core knows: frozen values, filled by the journal, the account and the configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import FeeRate, Network, OriginKey, OutPoint, Sats, Transaction, Vault
from multisig.tokens import Bytecode
from signerd.core.places import Places
from signerd.core.rules.spending import Moment, Spent
from signerd.core.rules.values import NO_RULES, Rules
from signerd.core.states import AT_THE_DEVICE, DECIDED_YES, State
from signerd.core.tokens import Screen, TokenClaim
from signerd.core.trouble import Trouble


@dataclass(frozen=True)
class Imported:
    """Who imported a PSBT that the platform knows nothing of. ``app_id`` None: the person did.

    ``by``: as the person is told. ``expires_at``: Unix seconds, after which the person is no longer asked
    about it. ``paid``, ``fee`` (satoshis), ``title`` (without the person's own names): as it was judged when
    it came, for lists: its bytes stay as they are.
    """

    by: str
    app_id: str | None
    expires_at: int
    paid: int | None = None
    fee: int | None = None
    title: str | None = None


@dataclass(frozen=True)
class Snapshot:
    """What the platform said about a proposal when it was last asked. None of it is believed without a check.

    ``call``: what it says that the token data says; ``contract_uid``: under which number it knows the token.
    ``created_at``: RFC 3339 UTC. It and ``created_by_name`` are empty where it does not say.
    ``brought`` (journals store the name): it was imported and is no proposal of the platform's: only its PSBT
    is known, and whose coins it seems to spend; ``vault_id`` is empty where those are no vault's.
    """

    psbt_id: str
    workspace_id: int
    workspace_network: str  # "mainnet" or "testnet", as the platform calls them
    vault_id: str
    kind: TxType
    status: ProposalStatus
    psbt: bytes
    recipients: tuple[str, ...]
    amounts: tuple[int, ...]
    op_return: str | None
    fee: int
    txid_expected: str
    description: str
    created_by: str
    required: int
    collected: int
    txid: str | None = None
    confirmations: int = 0
    replaces: str | None = None
    brought: Imported | None = None
    call: TokenClaim | None = None
    contract_uid: int | None = None
    created_by_name: str = ""
    created_at: str = ""
    trouble: Trouble | None = None

    @property
    def is_of_token(self) -> bool:
        """The platform says that it makes or calls a token."""
        return self.kind in (TxType.DEPLOY, TxType.CALL)

    @property
    def is_of_profile(self) -> bool:
        """It was imported, and spends from the person's own profile at most, not from a vault."""
        return self.brought is not None and not self.vault_id


@dataclass(frozen=True)
class Approval:
    """The person's yes: bound to the hash of what was shown (S24), naming the warnings that were read."""

    digest: str
    acknowledged: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Signature:
    """What the device made, as it is submitted: these bytes under this key and no others, ever."""

    psbt: bytes = field(repr=False)
    idempotency_key: str


@dataclass(frozen=True)
class Decline:
    reason: str
    delivered: bool = False


@dataclass(frozen=True)
class Record:
    """One proposal's life here. ``identity`` is the txid of the unsigned transaction as first seen.

    ``exported``: the PSBT that was given out for a device without a cable. It may be signed ever since.
    ``let_go``: it ended long ago, and the platform is asked no more what became of the signature.
    """

    snapshot: Snapshot
    state: State
    identity: str
    approval: Approval | None = None
    signature: Signature | None = None
    decline: Decline | None = None
    reason: str = ""
    alarm: str = ""
    exported: bytes | None = field(default=None, repr=False)
    let_go: bool = False

    @property
    def psbt_id(self) -> str:
        return self.snapshot.psbt_id


@dataclass(frozen=True)
class OwnKey:
    """An account of this signer's device, read from the device itself when it was registered."""

    key: OriginKey
    purpose: str  # "vault" or "profile"
    account: int


@dataclass(frozen=True)
class FormerKey:
    """A key of ours whose device another one has taken the place of. ``replaced``: when, where the journal
    knows it.
    """

    own: OwnKey
    replaced: datetime | None = None


@dataclass(frozen=True)
class Pin:
    """A vault that the person compared with the other signers. It changes no more (S16)."""

    vault_id: str
    workspace_id: int
    name: str
    vault: Vault
    own_key: OriginKey


# What a message's transaction pays (`multisig.bip322`): 0 to OP_RETURN. A payment of just this burns all of
# its coins, and is refused.
NOTHING_PAID = frozenset({(b"\x6a", 0)})


@dataclass(frozen=True)
class Neighbour:
    """Another proposal that spends the same coins, pays the same, or is the one that a proposal says it
    replaces.

    ``payments``: every output, as (script, satoshis). ``psbt``: as it was signed here, else as the platform
    shows it; ``signed_at``: when its signature was recorded, else when it was ``exported``. ``collected``:
    how many signatures it had at most by the platform's word, of ``required``.
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

    @property
    def may_confirm(self) -> bool:
        """A signature of ours is out, or may be, or the platform says that others completed it.

        Nothing takes that back. No chain is asked, so that all that could say that it will never confirm, or
        that it has confirmed already, is the platform's word; and an attacker who wants to be paid twice
        would say just that (S6).
        """
        if self.is_proof:
            return False
        return self.signed or self.exported or self.state in DECIDED_YES or self.state in AT_THE_DEVICE

    @property
    def is_open(self) -> bool:
        """No signature of ours is out, but the person may still be asked for it."""
        return not self.is_proof and not self.may_confirm and self.state in OPEN_STATES

    @property
    def is_proof(self) -> bool:
        """A message (BIP-322): signed or not, it can never be mined."""
        return self.payments == NOTHING_PAID


# What a row of an unfollowed proposal takes in the journal with its index: of the proposal, an output or a
# coin.
UNFOLLOWED_ROW_BYTES = 200


@dataclass(frozen=True)
class Unfollowed:
    """Another proposal of the vault that others signed, and that never awaited this machine while it looked
    (S27).

    ``collected``: as of a neighbour. ``tx``: without witnesses.
    """

    psbt_id: str
    status: ProposalStatus
    collected: int
    required: int
    tx: Transaction = field(repr=False)

    @cached_property
    def outpoints(self) -> frozenset[OutPoint]:
        return frozenset(item.outpoint for item in self.tx.inputs)

    @property
    def size(self) -> int:
        """What it takes in the journal, in bytes."""
        rows = 1 + len(self.payments) + len(self.outpoints)
        return len(self.tx.serialize()) + rows * UNFOLLOWED_ROW_BYTES

    @cached_property
    def payments(self) -> frozenset[tuple[bytes, int]]:
        """Every output, as (script, satoshis)."""
        return frozenset((output.script_pubkey, int(output.amount)) for output in self.tx.outputs)


OPEN_STATES = frozenset(
    {
        State.RECEIVED,
        State.INSPECTED,
        State.WAITING_PERSON,
        State.WAITING_DEVICE,
        State.INTERRUPTED,
    }
)


# Bitcoin Core's -maxtxfee default: 0.10 BTC.
DEFAULT_MAX_FEE = Sats(10_000_000)
# Above every fee rate the chain has ever asked for; Trezor refuses outright at 2,000 sat/vB.
DEFAULT_MAX_FEE_RATE = FeeRate(1_000_000)
# A Coldcard refuses a fee of 10 % or more of the outputs and warns from 5 %.
DEFAULT_MAX_FEE_PERCENT = 10
DEFAULT_WARN_FEE_PERCENT = 5


@dataclass(frozen=True)
class Limits:
    """What this machine never signs above (S7). ``*_percent`` is of the sum of all outputs."""

    max_fee: Sats = DEFAULT_MAX_FEE
    max_fee_rate: FeeRate = DEFAULT_MAX_FEE_RATE
    max_fee_percent: int = DEFAULT_MAX_FEE_PERCENT
    warn_fee_percent: int = DEFAULT_WARN_FEE_PERCENT


@dataclass(frozen=True)
class ReviewContext:
    """What this machine knows that bears on one proposal. ``claimed_descriptor`` is the platform's word
    today.

    ``lowered``: the checks that the configuration lowers. ``spent``: what was signed in the longest window of
    a rule. ``unfollowed``: what others signed without this machine, and pays the same. ``claimed_name``: what
    the platform calls the vault today. ``vault_changes``: in what it has ever shown the pinned vault
    otherwise, while the person has not looked. ``moment`` None: the time is not known, and what depends on it
    says so. ``former_keys``: those of devices that were replaced. ``revoked``: what the platform has said
    against the registered key, in words; empty where it has said nothing. ``lapsed``: the time is over in
    which the person is asked about what was brought. ``token``: that which its payload names, where bytes
    have proven it. ``pins``: every pinned vault, where that token's list may name one. ``places``: the
    addresses that are known to be used, by ``places.policy_code``. ``screen``: that of the device which was
    last seen with our key of the vault; None where none was.
    """

    network: Network
    limits: Limits
    pin: Pin | None
    claimed_descriptor: str | None
    own_keys: tuple[OwnKey, ...]
    neighbours: tuple[Neighbour, ...] = ()
    unfollowed: tuple[Unfollowed, ...] = ()
    lowered: frozenset[str] = frozenset()
    rules: Rules = NO_RULES
    spent: tuple[Spent, ...] = ()
    moment: Moment | None = None
    claimed_name: str | None = None
    vault_changes: tuple[str, ...] = ()
    former_keys: tuple[FormerKey, ...] = ()
    revoked: str = ""
    lapsed: bool = False
    token: Bytecode | None = None
    pins: tuple[Pin, ...] = ()
    places: Mapping[str, Places] = field(default_factory=dict)
    screen: Screen | None = None
