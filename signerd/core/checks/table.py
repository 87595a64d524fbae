"""The table of all checks, in the order in which they run and are shown.

A row registers a check. The review runs the rows, the configuration may lower some, and the settings, the
page, the terminal and ``/v1`` show name and sentence. Names are stable: programs, configurations and journals
contain them. ``docs/build/adding/check.md`` says how to add one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from types import MappingProxyType
from typing import Any

from custody.schemas.proposals import TxType
from multisig import Psbt
from multisig.bip322 import is_proof
from signerd.core.checks import before, locks, neighbours, payments, tokens
from signerd.core.checks.case import Case, Outcome, Verdict, hold, warn
from signerd.core.rules.values import RULE_NAMES
from signerd.core.tokens import takes_back
from signerd.core.values import ReviewContext, Snapshot

# A check against one of these attacks may not be lowered: it proves whose money it is, where it goes, or that
# what is signed is what was shown.
UNTOUCHABLE = frozenset({f"S{number}" for number in (1, 2, 3, 4, 5, 8, *range(13, 20), 23, 24, 32)})
HOLD, WARN = "hold", "warn"


class Stage(StrEnum):
    """When a check runs. Where one refuses ``BEFORE`` the inspection, nothing after it runs, unless it is one
    of ``OF_OUR_KEY``.
    """

    READING = "reading"
    BEFORE = "before"
    INSPECTION = "inspection"
    AFTER = "after"
    RULES = "rules"
    SETTINGS = "settings"


class JudgedKind(Enum):
    """What is judged: a proposal's payment, forward, token transaction or message (BIP-322), or an imported
    PSBT of a vault or a profile.
    """

    PAYMENT = auto()
    FORWARD = auto()
    TOKEN = auto()
    IMPORTED = auto()
    IMPORTED_OF_PROFILE = auto()
    PROOF = auto()
    IMPORTED_PROOF = auto()


ANY = frozenset(JudgedKind)
# A message moves nothing: checks of payments do not apply.
PROOFS = frozenset({JudgedKind.PROOF, JudgedKind.IMPORTED_PROOF})
MOVES = ANY - PROOFS
IMPORTS = frozenset({JudgedKind.IMPORTED, JudgedKind.IMPORTED_OF_PROFILE, JudgedKind.IMPORTED_PROOF})
PROPOSALS = ANY - IMPORTS
OF_VAULT = ANY - {JudgedKind.IMPORTED_OF_PROFILE}
# A token's transaction makes no payment: its data is compared instead of recipients.
COINS = MOVES - {JudgedKind.TOKEN}
RECORDED = PROPOSALS - {JudgedKind.TOKEN, JudgedKind.PROOF}
TOKENS = frozenset({JudgedKind.TOKEN})
FORWARDS = frozenset({JudgedKind.FORWARD})
OF_PROFILE = frozenset({JudgedKind.IMPORTED_OF_PROFILE})


@dataclass(frozen=True)
class Check:
    """``attacks``: their numbers in the threat model; empty where it guards against a mistake.

    ``lowered``: what a refusal or a hold becomes where the configuration lowers the check; None: it may not
    be lowered. ``HOLD`` asks the person to name the warning, ``WARN`` only shows it. ``run``: takes the
    ``Case`` before the inspection and the ``InspectedCase`` from it on. None: the review or
    ``multisig.inspect`` gives the verdict. ``private``: its sentence contains other proposals or what
    was spent; an app sees only the outcome.
    """

    name: str
    attacks: tuple[str, ...]
    stage: Stage
    sentence: str
    lowered: str | None = None
    of: frozenset[JudgedKind] = ANY
    run: Callable[[Any], Verdict] | None = None
    private: bool = False

    def __post_init__(self) -> None:
        if self.lowered is not None and not UNTOUCHABLE.isdisjoint(self.attacks):
            raise ValueError(f"'{self.name}' guards against {', '.join(self.attacks)} and may not be lowered")
        if self.stage in {Stage.BEFORE, Stage.AFTER} and self.run is None:
            raise ValueError(f"'{self.name}' would never be run")


READING, BEFORE, INSPECTION, AFTER = Stage.READING, Stage.BEFORE, Stage.INSPECTION, Stage.AFTER

# fmt: off
_ROWS = (
    Check("psbt-readable", ("S23",), READING, "The PSBT can be read, within bounds."),
    Check("imported", ("S12", "S13"), BEFORE,
          "It is a proposal of the platform's; else the warning names what is not compared.",
          of=IMPORTS, run=before.without_record),
    Check("imported-open", ("S24",), BEFORE, "The time to approve it is not over.",
          of=IMPORTS, run=before.in_time),
    Check("imported-coins", ("S3",), BEFORE, "Coins of no pinned vault belong to the registered profile.",
          of=OF_PROFILE, run=before.own_coins),
    Check("kind-known", ("S12",), BEFORE,
          "It is of the kind that it claims, which this version can check in full.",
          of=PROPOSALS, run=before.kind_known),
    Check("vault-pinned", ("S16",), BEFORE, "The person pinned the vault on this machine.",
          of=OF_VAULT, run=before.pinned),
    Check("vault-unchanged", ("S16",), BEFORE, "The platform shows the vault as it was pinned.",
          of=OF_VAULT, run=before.unchanged),
    Check("vault-alarm", ("S16",), BEFORE, "No change of the vault waits for the person to look at it.",
          of=OF_VAULT, run=before.change_looked_at),
    Check("vault-name", (), BEFORE, "The vault has the name under which it was pinned.",
          of=OF_VAULT, run=before.name_kept),
    Check("network", ("S14",), BEFORE, "Workspace, vault and daemon are on one network.",
          run=before.network_agrees),
    Check("own-key", ("S15",), BEFORE, "Exactly our registered key is in the vault.",
          of=OF_VAULT, run=before.own_key_inside),
    Check("key-revoked", (), BEFORE, "The platform has not said that our key is revoked.",
          run=before.key_stands),
    Check("forward-profile", ("S12",), BEFORE, "A forward is from the member's registered profile.",
          of=FORWARDS, run=before.from_profile),
    Check("transaction", ("S1", "S2", "S3", "S4", "S5", "S8"), INSPECTION, "The bytes prove what they claim.",
          run=payments.proven),
    Check("input-not-ours", ("S3",), INSPECTION, "Every input is proven the vault's."),
    Check("absurd-path", ("S9",), INSPECTION, "No index lies beyond those that wallets search."),
    Check("duplicate-input", ("S23",), INSPECTION, "No coin is spent twice in one transaction."),
    Check("previous-transaction-missing", ("S5", "S32"), INSPECTION,
          "The transaction that made each coin is included."),
    Check("previous-transaction-mismatch", ("S5",), INSPECTION, "It is the one that made the coin."),
    Check("amount-mismatch", ("S4",), INSPECTION, "The coin's amount is that of its transaction."),
    Check("script-mismatch", ("S5",), INSPECTION, "The coin's script is that of its transaction."),
    Check("witness-script-mismatch", ("S1", "S2"), INSPECTION, "The script given is the vault's."),
    Check("origins-missing", (), INSPECTION, "The origin of a key says where in the vault each coin lies."),
    Check("origins-mismatch", ("S1", "S2"), INSPECTION, "The keys and paths given are the vault's."),
    Check("sighash-not-all", ("S8",), INSPECTION, "A signature covers the whole transaction."),
    Check("bad-signature", ("S19",), INSPECTION,
          "Each signature that is there is a cosigner's, over this transaction."),
    Check("input-finalised", ("S3",), INSPECTION, "There is something left to sign."),
    Check("no-outputs", ("S7",), INSPECTION, "There is at least one output."),
    Check("fake-change", ("S1", "S2"), INSPECTION, "Outputs that claim to be change are the vault's."),
    Check("unknown-output-script", ("S10",), INSPECTION, "Every output is of a known kind."),
    Check("op-return-malformed", ("S10",), INSPECTION, "Data can be shown whole."),
    Check("op-return-multiple", ("S10",), INSPECTION, "There is one piece of data at most."),
    Check("op-return-burns", ("S10",), INSPECTION, "No money goes to a data output."),
    Check("token-payload-invalid", ("S10", "S12"), INSPECTION,
          "Data that is marked as a token's can be decoded."),
    Check("anchor-output", (), INSPECTION, "No output is anyone's to take (P2A)."),
    Check("anchor-burns", ("S10",), INSPECTION, "An output that anyone may take holds 240 sat at most."),
    Check("dust-output", (), INSPECTION, "No output is below the dust limit."),
    Check("wrong-network", ("S14",), INSPECTION, "The keys are of this network."),
    Check("xpub-mismatch", ("S15", "S16"), INSPECTION, "The account keys are the vault's."),
    Check("fee-negative", ("S7",), INSPECTION, "The outputs are covered by the coins."),
    Check("fee-above-limit", ("S7",), INSPECTION, "The fee is below the hard limit."),
    Check("fee-high", ("S7",), INSPECTION, "The fee is no large share of what is spent."),
    Check("non-standard-version", (), INSPECTION, "Nodes relay this transaction version."),
    Check("locked-by-time", ("S24",), INSPECTION, "It is not locked until a time."),
    Check("locked-by-age", ("S30",), INSPECTION, "No coin must reach an age first."),
    Check("not-a-proof", (), INSPECTION, "A message's transaction is the one that stands for it."),
    Check("message-not-showable", (), INSPECTION, "A device can show the whole message."),
    Check("proof", (), AFTER, "The message, and what of the vault it speaks for, are proven.",
          of=PROOFS, run=before.proves),
    Check("proof-on-device", (), AFTER, "The device that has our key signs such messages.",
          of=PROOFS, run=before.signable),
    Check("transaction-id", ("S12", "S24"), AFTER, "The platform speaks of this transaction.",
          of=PROPOSALS, run=payments.transaction_id),
    Check("recipients", ("S12", "S13"), AFTER, "Exactly the recorded recipients are paid.",
          of=RECORDED, run=payments.payments_match),
    Check("amounts", ("S12", "S13"), AFTER, "Each gets the recorded amount.",
          of=RECORDED, run=payments.amounts_match),
    Check("data", ("S10", "S12"), AFTER, "The data is the recorded data.",
          of=COINS, run=payments.data_matches),
    Check("token-known", ("S12", "S13"), AFTER, "The token is proven by the bytes of its deployment.",
          of=TOKENS, run=tokens.token_known),
    Check("token-call", ("S12", "S13"), AFTER, "The data is what the proposal says of it.",
          of=TOKENS, run=tokens.token_call),
    Check("token-shape", ("S12",), AFTER,
          "The vault's address makes the call, and there is no other payment.",
          of=TOKENS, run=tokens.token_shape),
    Check("token-effect", ("S12",), AFTER, "The person names an effect that cannot be undone.",
          of=TOKENS, run=tokens.token_effect),
    Check("token-listed", ("S12",), AFTER,
          "The person names the addresses that a new token lists from the start.",
          of=TOKENS, run=tokens.token_listed),
    Check("token-not-on-screen", ("S28",), AFTER, "The device shows what the call gives, and to whom.",
          of=TOKENS, run=tokens.token_on_screen),
    Check("fee-recorded", ("S12",), AFTER, "The fee is the recorded one.",
          lowered=HOLD, of=PROPOSALS - PROOFS, run=payments.fee_matches),
    Check("fee-total", ("S7", "S32"), AFTER, "The fee is within the configured limit.",
          of=MOVES, run=payments.total_fee_limit),
    Check("fee-rate", ("S7", "S32"), AFTER, "The fee rate is within the configured limit.",
          of=MOVES, run=payments.fee_rate_limit),
    Check("fee-share", ("S7",), AFTER, "The fee is within the configured share of what is moved.",
          lowered=HOLD, of=MOVES, run=payments.fee_share_limit),
    Check("locktime", ("S30",), AFTER, "It need not wait long before it can be mined.",
          lowered=WARN, of=MOVES, run=locks.locktime),
    Check("change-index", ("S29",), AFTER, "What comes back goes where a restored wallet finds it.",
          of=COINS, run=payments.change_index, private=True),
    Check("replacement-not-pinned", ("S16",), AFTER,
          "What a vault pays that is said to be replaced goes to a pinned vault.",
          of=COINS, run=payments.into_pinned),
    Check("replacement", ("S11",), AFTER,
          "A declared replacement only raises the fee, or takes everything back.",
          of=PROPOSALS - PROOFS, run=neighbours.replacement),
    Check("conflict", ("S25",), AFTER, "No other proposal spends the same coins.",
          lowered=WARN, of=MOVES, run=neighbours.conflicting, private=True),
    Check("look-alike", ("S37",), AFTER,
          "No payee only resembles an address that was paid, pinned or named before.",
          of=COINS, run=payments.look_alike, private=True),
    Check("paid-twice", ("S6", "S26"), AFTER,
          "No signed transaction makes the same payment from other coins.",
          of=COINS, run=neighbours.paid_twice, private=True),
    Check("token-twice", ("S6",), AFTER,
          "No signed transaction makes the same call or deployment from other coins.",
          of=TOKENS, run=tokens.token_twice),
    Check("signed-by-others", ("S27",), AFTER, "Others have not signed the same payment from other coins.",
          of=MOVES, run=neighbours.signed_by_others),
    Check("forward-destination", ("S12",), AFTER, "A forward goes into the pinned vault only.",
          of=FORWARDS, run=payments.into_vault),
    Check("lowered", (), Stage.SETTINGS, "Names the checks that the configuration lowers."),
)
# fmt: on


def by_name(checks: Iterable[Check]) -> Mapping[str, Check]:
    """Raises ValueError for a repeated name."""
    named: dict[str, Check] = {}
    for check in checks:
        if check.name in named:
            raise ValueError(f"two checks are called '{check.name}'")
        named[check.name] = check
    return MappingProxyType(named)


_RULES = (Check(name, (), Stage.RULES, "A rule of rules.toml.", private=True) for name in RULE_NAMES)
CHECKS = by_name((*_ROWS, *_RULES))
LOWERABLE = tuple(sorted(name for name, check in CHECKS.items() if check.lowered is not None))
# Verdicts without a function: an unreadable PSBT, and the lowered checks.
READABLE, LOWERED = "psbt-readable", "lowered"
# The check that compares the transaction with its kind.
KIND = "kind-known"
# They say nothing against the transaction.
OF_OUR_KEY = frozenset({"own-key", "key-revoked"})


def kind_of(snapshot: Snapshot, psbt: Psbt) -> JudgedKind:
    # By the bytes, not by the platform's kind.
    if is_proof(psbt):
        return JudgedKind.PROOF if snapshot.imported is None else JudgedKind.IMPORTED_PROOF
    if snapshot.imported is not None:
        return JudgedKind.IMPORTED_OF_PROFILE if snapshot.is_of_profile else JudgedKind.IMPORTED
    if snapshot.kind is TxType.FORWARD:
        return JudgedKind.FORWARD
    # The cancel of a token's transaction carries no data: it pays everything back to the vault.
    return JudgedKind.TOKEN if snapshot.is_of_token and not takes_back(psbt) else JudgedKind.PAYMENT


def case_of(snapshot: Snapshot, psbt: Psbt, context: ReviewContext) -> Case:
    """The input of the checks before the inspection."""
    return Case(snapshot, psbt, context, not_compared=not_compared(kind_of(snapshot, psbt)))


def not_compared(kind: JudgedKind) -> tuple[str, ...]:
    """The names of the checks that need a record, for an imported PSBT, which has none."""
    if kind not in IMPORTS:
        return ()
    return tuple(
        check.name
        for check in CHECKS.values()
        if check.stage is Stage.AFTER and JudgedKind.PAYMENT in check.of and kind not in check.of
    )


def run(stage: Stage, case: Case) -> tuple[Verdict, ...]:
    """The verdicts of the checks of a stage."""
    kind = kind_of(case.snapshot, case.psbt)
    return tuple(
        check.run(case).under(check.name)
        for check in CHECKS.values()
        if check.run is not None and check.stage is stage and kind in check.of
    )


def lower(verdicts: tuple[Verdict, ...], names: frozenset[str]) -> tuple[Verdict, ...]:
    """The verdicts as the configuration lowers them, and one that lists what it lowers.

    A name that may not be lowered is ignored.
    """
    wanted = sorted(names.intersection(LOWERABLE))
    if not wanted:
        return verdicts
    listed = ", ".join(wanted)
    summary = warn(f"Lowered in this machine's configuration: {listed}.", checks=listed).under(LOWERED)
    return (*(_lowered(verdict) if verdict.name in wanted else verdict for verdict in verdicts), summary)


def _lowered(verdict: Verdict) -> Verdict:
    """The verdict after lowering: never stricter than before."""
    to = CHECKS[verdict.name].lowered
    if to == HOLD and verdict.outcome is Outcome.REFUSE:
        return hold(verdict.sentence, **verdict.figures).under(verdict.name)
    if to == WARN and verdict.acknowledge:
        return warn(verdict.sentence, **verdict.figures).under(verdict.name)
    return verdict
