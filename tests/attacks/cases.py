"""The corpus as the runners read it, from its files alone."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import Network, OriginKey, Policy, Profile, Psbt, Vault
from multisig.tokens import Bytecode, Deploy
from signerd.core.states import State
from signerd.core.tokens import (
    ModelScreen,
    NotProven,
    PublishedToken,
    TokenClaim,
    payload_of_bytes,
    prove_blob,
    prove_token,
)
from signerd.core.values import Neighbour, OwnKey, Pin, ReviewContext, SigningLimits, Snapshot
from tests.attacks.make import CORPUS
from tests.attacks.people import ALICE, NAME, VAULT_ID, WORKSPACE
from tests.attacks.rules import damaged

T = TypeVar("T")
ALLOWED_WITHOUT_LOOK = "transaction"
"""The verdict that sums up the findings: refused wherever there is one."""


@dataclass(frozen=True)
class Attack:
    """One file of the corpus."""

    number: str
    sentence: str
    source: str
    network: Network
    pinned: Vault
    parts: dict[str, list[dict[str, Any]]]


@cache
def attacks() -> tuple[Attack, ...]:
    return tuple(_attack(json.loads(path.read_text())) for path in sorted(CORPUS.glob("*.json"), key=_order))


def _order(path: Any) -> tuple[bool, int, str]:
    """The attacks by their numbers, then the faults by their names."""
    kind, name = path.stem[0], path.stem[1:]
    return kind != "S", int(name) if kind == "S" else 0, name


def _attack(data: dict[str, Any]) -> Attack:
    network = Network(data.pop("network"))
    pinned = Vault.from_descriptor(data.pop("pinned"), network)
    return Attack(data.pop("number"), data.pop("sentence"), data.pop("source"), network, pinned, data)


@dataclass(frozen=True)
class Proposal:
    """A PSBT, what the platform says of it, what this machine knows, and what must come of it. See
    `recipes.scene.Recipe`.
    """

    attack: Attack
    data: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.attack.number} {self.data['name']}"

    def __getattr__(self, name: str) -> Any:
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def psbt_id(self) -> str:
        """Short, and of the characters that an id may have."""
        return f"{self.attack.number}-{hashlib.sha256(self.data['name'].encode()).hexdigest()[:8]}"

    @property
    def raw(self) -> bytes:
        return base64.b64decode(self.data["psbt"])

    @property
    def parsed(self) -> Psbt:
        return Psbt.parse(self.raw)

    @property
    def policy(self) -> Policy:
        """The policy of its coins: the pinned vault, or the profile of a forward."""
        if self.profile is None:
            return self.attack.pinned
        return Profile(self.attack.network, OriginKey.parse(self.profile, self.attack.network))

    @property
    def codes(self) -> set[str]:
        return {code for code, _subject in self.findings}

    @property
    def refusals(self) -> set[str]:
        """Every verdict that must refuse, without the summary."""
        return self.codes | set(self.checks)

    @property
    def is_special(self) -> bool:
        """Whether it needs a machine in an unusual state, whose daemon no other proposal can share."""
        return bool(self.around) or "workspace_network" in self.platform

    def snapshot(self, raw: bytes | None = None) -> Snapshot:
        """What the platform says; ``raw`` instead of the PSBT's bytes."""
        return snapshot(self.psbt_id, self.raw if raw is None else raw, self.platform)

    @property
    def looked_at_again(self) -> Snapshot:
        """What the platform says at the next poll, as complete as at the first."""
        return snapshot(self.psbt_id, base64.b64decode(self.later["psbt"]), self.later["platform"])

    def review_context(self) -> ReviewContext:
        around = self.around
        own = OriginKey.parse(around["own"], self.attack.network) if "own" in around else ALICE.vault_key()
        pin = Pin(VAULT_ID, around.get("workspace", WORKSPACE), NAME, self.attack.pinned, ALICE.vault_key())
        return ReviewContext(
            network=self.attack.network,
            limits=SigningLimits(),
            pin=pin if around.get("pinned", True) else None,
            claimed_descriptor=around.get("claimed", self.attack.pinned.descriptor),
            own_keys=(OwnKey(own, "vault", 0), OwnKey(ALICE.profile().key, "profile", 0)),
            neighbours=tuple(self._neighbour(n, other) for n, other in self._others()),
            claimed_replacement=around.get("replaced_by"),
            vault_changes=tuple(around.get("changes", ())),
            token=proven(self.snapshot(), self.platform),
            screen=self._screen(),
        )

    def _screen(self) -> ModelScreen | None:
        """By default one that shows all; in the corpus as [name, whole, first]."""
        told = self.around.get("screen", ["Ledger 2.4.6", 80, 0])
        return None if told is None else ModelScreen(*told)

    def _others(self) -> Iterator[tuple[int, dict[str, Any]]]:
        yield from enumerate(self.around.get("neighbours", ()))

    def _neighbour(self, number: int, other: dict[str, Any]) -> Neighbour:
        raw = base64.b64decode(other["psbt"])
        psbt = Psbt.parse(raw)
        return Neighbour(
            psbt_id=f"other-{number}",
            state=State(other["state"]),
            signed=other["signed"],
            outpoints=frozenset(item.outpoint for item in psbt.tx.inputs),
            payments=frozenset((output.script_pubkey, int(output.amount)) for output in psbt.tx.outputs),
            psbt=raw,
            collected=other.get("platform", {}).get("collected", 0),
            required=2,
            txid=psbt.tx.txid,
        )


def snapshot(psbt_id: str, raw: bytes, story: dict[str, Any]) -> Snapshot:
    claim = story.get("call")
    return Snapshot(
        psbt_id=psbt_id,
        workspace_id=WORKSPACE,
        workspace_network=story.get("workspace_network", "testnet"),
        vault_id=story.get("vault_id", VAULT_ID),
        kind=TxType(story.get("kind", TxType.SEND)),
        status=ProposalStatus.PENDING,
        psbt=raw,
        recipients=tuple(story["recipients"]),
        amounts=tuple(story["amounts"]),
        op_return=story["op_return"],
        fee=story["fee"],
        txid_expected=story["txid_expected"],
        description=story.get("description", "Invoice 7"),
        created_by="2",
        required=2,
        collected=story.get("collected", 0),
        replaces=story.get("replaces"),
        call=None if claim is None else TokenClaim(tuple(sorted(claim.items()))),
        # Each has a token of its own.
        contract_uid=int.from_bytes(hashlib.sha256(psbt_id.encode()).digest()[:3]) + 1,
    )


def shown_of(story: dict[str, Any]) -> PublishedToken | None:
    """What the platform publishes of its token."""
    told = story.get("published")
    if told is None:
        return None
    return PublishedToken(told["bytecode"].encode(), bytes.fromhex(told["deployment"]) or None)


def proven(shown: Snapshot, story: dict[str, Any]) -> Bytecode | None:
    """What a machine knows of the token after it was shown this."""
    payload, told = payload_of_bytes(shown.psbt), shown_of(story)
    if payload is None or told is None or not shown.is_of_token:
        return None
    try:
        if isinstance(payload, Deploy):
            return prove_blob(payload.bytecode_hash, told.bytecode)
        return prove_token(payload.contract_id, told)
    except NotProven:
        return None


@dataclass(frozen=True)
class Entry:
    """A named case of any other part."""

    attack: Attack
    data: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.attack.number} {self.data['name']}"

    def __getattr__(self, name: str) -> Any:
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None

    def bytes(self, name: str) -> bytes:
        return base64.b64decode(self.data[name])


def _all(part: str, make: Callable[[Attack, dict[str, Any]], T]) -> tuple[T, ...]:
    return tuple(make(attack, data) for attack in attacks() for data in attack.parts.get(part, ()))


def proposals(choose: Callable[[Proposal], bool] = lambda _proposal: True) -> tuple[Proposal, ...]:
    return tuple(filter(choose, _all("proposals", Proposal)))


def entries(part: str) -> tuple[Entry, ...]:
    return _all(part, Entry)


def sound() -> Proposal:
    """The honest proposal that S23 damages."""
    return next(p for p in proposals() if p.attack.number == "S23" and p.honest)


def damage(entry: Entry) -> bytes:
    return damaged(sound().raw, entry.rule, entry.amount)
