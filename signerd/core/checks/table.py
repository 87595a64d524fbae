"""Every verdict that a review can hold, by name: which attack it is for, and whether a person may lower it.

A check that proves whose money it is, where it goes, or that what is signed is what was shown, is never lowered.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from signerd.core.rules.values import RULE_NAMES
from signerd.core.verdicts import Outcome, Verdict, hold, warn

# No check that stands against one of these may be lowered.
UNTOUCHABLE = frozenset({f"S{number}" for number in (1, 2, 3, 4, 5, 8, *range(13, 20), 23, 24)})


@dataclass(frozen=True)
class Check:
    """``attacks``: their numbers in the threat model, none where it guards against a mistake.

    ``lowered``: what a refusal or a hold becomes where the configuration says so; None: it may not be lowered.
    ``hold`` asks the person to name the warning, ``warn`` only shows it.
    """

    name: str
    attacks: tuple[str, ...]
    sentence: str
    lowered: str | None = None


HOLD, WARN = "hold", "warn"

_KNOWN_VAULT = (
    Check("psbt-readable", ("S23",), "The PSBT can be read, within bounds."),
    Check("kind-known", ("S12",), "It is what it is called, and this version can check such a one in full."),
    Check("vault-pinned", ("S16",), "The person pinned the vault on this machine."),
    Check("vault-unchanged", ("S16",), "The platform shows the vault as it was pinned."),
    Check("vault-alarm", ("S16",), "No change of the vault waits to be looked at."),
    Check("vault-name", (), "The vault has the name under which it was pinned."),
    Check("network", ("S14",), "Workspace, vault and daemon are on one network."),
    Check("own-key", ("S15",), "Exactly our registered key is in the vault."),
    Check("key-revoked", (), "The platform has not said that our key is revoked."),
    Check("transaction", ("S1", "S2", "S3", "S4", "S5", "S8"), "The bytes prove what they claim."),
)

_FINDINGS = (
    Check("input-not-ours", ("S3",), "Every input is proven the vault's."),
    Check("absurd-path", ("S9",), "No index where nobody looks."),
    Check("duplicate-input", ("S23",), "No coin is spent twice in one transaction."),
    Check("previous-transaction-missing", ("S5",), "The transaction that made each coin is there."),
    Check("previous-transaction-mismatch", ("S5",), "It is the one that made the coin."),
    Check("witness-utxo-missing", ("S4",), "The coin itself is there."),
    Check("amount-mismatch", ("S4",), "The coin's amount is that of its transaction."),
    Check("script-mismatch", ("S5",), "The coin's script is that of its transaction."),
    Check("witness-script-mismatch", ("S1", "S2"), "The script given is the vault's."),
    Check("origins-mismatch", ("S1", "S2"), "The keys and paths given are the vault's."),
    Check("sighash-not-all", ("S8",), "A signature covers the whole transaction."),
    Check("bad-signature", ("S19",), "Each signature that is there is a cosigner's, over this transaction."),
    Check("input-finalised", ("S3",), "There is something left to sign."),
    Check("no-outputs", ("S7",), "Somebody is paid."),
    Check("fake-change", ("S1", "S2"), "What is said to come back does."),
    Check("unknown-output-script", ("S10",), "Every output is of a known kind."),
    Check("op-return-malformed", ("S10",), "Data can be shown whole."),
    Check("op-return-multiple", ("S10",), "There is one piece of data at most."),
    Check("op-return-burns", ("S10",), "No money goes to a data output."),
    Check("token-payload-invalid", ("S10", "S12"), "Data that says it is a token's can be read as one."),
    Check("dust-output", (), "Nodes pass every output on."),
    Check("wrong-network", ("S14",), "The keys are of this network."),
    Check("xpub-mismatch", ("S15", "S16"), "The account keys are the vault's."),
    Check("xpubs-missing", (), "A device will recognise the change."),
    Check("fee-negative", ("S7",), "The outputs are covered by the coins."),
    Check("fee-above-limit", ("S7",), "The fee is below what nobody would broadcast."),
    Check("fee-high", ("S7",), "The fee is no large share of what is spent."),
    Check("non-standard-version", (), "Nodes pass the version on."),
    Check("locked-by-time", ("S24",), "It waits for a height at most."),
    Check("locked-by-age", ("S30",), "No coin must grow older first."),
)

_INSPECTED = (
    Check("transaction-id", ("S12", "S24"), "The platform speaks of this transaction."),
    Check("recipients", ("S12", "S13"), "Exactly the recorded recipients are paid."),
    Check("amounts", ("S12", "S13"), "Each gets the recorded amount."),
    Check("data", ("S10", "S12"), "The data is the recorded data."),
    Check("fee-recorded", ("S12",), "The fee is the recorded one.", lowered=HOLD),
    Check("fee-total", ("S7",), "The fee is within the configured limit."),
    Check("fee-rate", ("S7",), "The fee rate is within the configured limit."),
    Check("fee-share", ("S7",), "The fee is within the configured share of what is moved.", lowered=HOLD),
    Check("locktime", ("S30",), "It need not wait long before it can be mined.", lowered=WARN),
    Check("change-index", ("S29",), "What comes back goes where a restored wallet finds it."),
    Check(
        "replacement",
        ("S11",),
        "What says that it replaces another one raises its fee only, or takes it back.",
    ),
    Check("conflict", ("S25",), "No other proposal spends the same coins.", lowered=WARN),
    Check("paid-twice", ("S6", "S26"), "No signed payment from other coins is the same."),
    Check("signed-by-others", ("S27",), "No payment that others signed from other coins is the same."),
)

_TOKENS = (
    Check("token-known", ("S12", "S13"), "The token is proven by the bytes of its deployment."),
    Check("token-call", ("S12", "S13"), "The data is what the proposal says of it."),
    Check("token-shape", ("S12",), "The vault's address calls, and nobody is paid beside it."),
    Check("token-effect", ("S12",), "What cannot be taken back is named."),
    Check("token-listed", ("S12",), "Whom a new token lists from the start is named."),
    Check("token-not-on-screen", ("S28",), "The device shows what the call gives, and to whom."),
    Check("token-twice", ("S6",), "No signed call or deployment from other coins is the same."),
)

_FORWARDED = (
    Check("forward-profile", ("S12",), "A forward is from the member's registered profile."),
    Check("forward-destination", ("S12",), "A forward goes into the pinned vault only."),
)

_BROUGHT = (
    Check(
        "brought", ("S12", "S13"), "It is a proposal of the platform's; else it says what is not compared."
    ),
    Check("brought-open", ("S24",), "The time is not over in which it may be approved."),
    Check("brought-coins", ("S3",), "What no pinned vault's is, is the registered profile's."),
)

LOWERED = "lowered"
_OWN = (Check(LOWERED, (), "Names the checks that the configuration lowers."),)
_RULES = tuple(Check(name, (), "A rule of rules.toml.") for name in RULE_NAMES)

CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        check.name: check
        for check in (
            *_KNOWN_VAULT,
            *_FINDINGS,
            *_INSPECTED,
            *_TOKENS,
            *_FORWARDED,
            *_BROUGHT,
            *_OWN,
            *_RULES,
        )
    }
)
LOWERABLE = tuple(sorted(name for name, check in CHECKS.items() if check.lowered is not None))


def lower(verdicts: tuple[Verdict, ...], names: frozenset[str]) -> tuple[Verdict, ...]:
    """The verdicts as the configuration lowers them, and one that says so. A name that may not be lowered is ignored."""
    wanted = sorted(names.intersection(LOWERABLE))
    if not wanted:
        return verdicts
    listed = ", ".join(wanted)
    told = warn(LOWERED, f"Lowered in this machine's configuration: {listed}.", checks=listed)
    return (*(_lowered(verdict) if verdict.name in wanted else verdict for verdict in verdicts), told)


def _lowered(verdict: Verdict) -> Verdict:
    """Never raised: what only warned before is as it was."""
    to = CHECKS[verdict.name].lowered
    if to == HOLD and verdict.outcome is Outcome.REFUSE:
        return hold(verdict.name, verdict.sentence, **verdict.figures)
    if to == WARN and verdict.acknowledge:
        return warn(verdict.name, verdict.sentence, **verdict.figures)
    return verdict
