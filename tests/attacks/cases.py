"""The attacks as the tests run them: each recipe in its scene, and what platform and machine know of it."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from custody.schemas.proposals import ProposalStatus, TxType
from multisig import OriginKey, Policy, Psbt, encode_address, resembled
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
from signerd.core.values import Neighbour, OwnKey, Pin, ReviewContext, SigningLimits, Snapshot, VaultClaim
from tests.attacks.people import ALICE, NAME, VAULT, VAULT_ID, WORKSPACE
from tests.attacks.recipes import PROPOSALS
from tests.attacks.recipes.absurd import Damage
from tests.attacks.recipes.scene import Neighbour as Beside
from tests.attacks.recipes.scene import Recipe, Scene, story
from tests.conformance.rigs import NETWORK
from tests.support.desk import neighbour

ALLOWED_WITHOUT_LOOK = "transaction"
"""The verdict that sums up the findings: refused wherever there is one."""


@dataclass(frozen=True, kw_only=True)
class Proposal(Recipe):
    """A recipe under its attack's number."""

    number: str

    def __str__(self) -> str:
        return f"{self.number} {self.name}"

    @property
    def psbt_id(self) -> str:
        """Short, and of the characters that an id may have."""
        return f"{self.number}-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"

    @cached_property
    def scene(self) -> Scene:
        return Scene(str(self))

    @cached_property
    def raw(self) -> bytes:
        return self.psbt(self.scene).to_bytes()

    @cached_property
    def parsed(self) -> Psbt:
        return Psbt.parse(self.raw)

    @cached_property
    def platform(self) -> dict[str, Any]:
        """What the platform says."""
        return {**story(self.parsed, self.named), **self.says, **self.tells(self.scene)}

    @cached_property
    def others(self) -> tuple[Beside, ...]:
        return tuple(self.neighbours(self.scene)) if self.neighbours else ()

    @property
    def policy(self) -> Policy:
        """The policy of its coins: the pinned vault, or the profile of a forward."""
        return VAULT if self.forward is None else self.forward.profile()

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
        return bool(self.around or self.neighbours) or "workspace_network" in self.says

    def snapshot(self, raw: bytes | None = None) -> Snapshot:
        """What the platform says; ``raw`` instead of the PSBT's bytes."""
        return snapshot(self.psbt_id, self.raw if raw is None else raw, self.platform)

    @property
    def looked_at_again(self) -> Snapshot:
        """What the platform says at the next poll, as complete as at the first."""
        assert self.later is not None
        psbt = self.later(self.scene)
        return snapshot(self.psbt_id, psbt.to_bytes(), story(psbt))

    def review_context(self) -> ReviewContext:
        around = self.around
        own = OriginKey.parse(around["own"], NETWORK) if "own" in around else ALICE.vault_key()
        pin = Pin(VAULT_ID, around.get("workspace", WORKSPACE), NAME, VAULT, ALICE.vault_key())
        # By default a screen that shows all.
        screen = around.get("screen", ("Ledger 2.4.6", 80, 0))
        known = [address for other in self.others if other.signed for address in _payees(other.psbt)]
        return ReviewContext(
            network=NETWORK,
            limits=SigningLimits(),
            pin=pin if around.get("pinned", True) else None,
            claim=VaultClaim(
                VAULT_ID,
                WORKSPACE,
                NAME,
                around.get("claimed", VAULT.descriptor),
                replaced_by=around.get("replaced_by"),
            ),
            own_keys=(OwnKey(own, "vault", 0), OwnKey(ALICE.profile().key, "profile", 0)),
            neighbours=tuple(_neighbour(n, other) for n, other in enumerate(self.others)),
            vault_changes=tuple(around.get("changes", ())),
            token=proven(self.snapshot(), self.platform),
            resembled=resembled(_payees(self.parsed), known, ()),
            screen=None if screen is None else ModelScreen(*screen),
        )


def _payees(psbt: Psbt) -> list[str]:
    return [encode_address(output.script_pubkey, NETWORK) or "" for output in psbt.outputs]


def _neighbour(number: int, other: Beside) -> Neighbour:
    collected = {"collected": other.tells.get("collected", 0), "required": 2}
    return neighbour(other.psbt, f"other-{number}", State(other.state), signed=other.signed, **collected)


def snapshot(psbt_id: str, raw: bytes, story: Mapping[str, Any]) -> Snapshot:
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


def shown_of(story: Mapping[str, Any]) -> PublishedToken | None:
    """What the platform publishes of its token."""
    told = story.get("published")
    if told is None:
        return None
    return PublishedToken(told["bytecode"].encode(), bytes.fromhex(told["deployment"]) or None)


def proven(shown: Snapshot, story: Mapping[str, Any]) -> Bytecode | None:
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


_ALL = tuple(
    Proposal(number=number, **vars(recipe)) for number, recipes in PROPOSALS.items() for recipe in recipes
)


def proposals(choose: Callable[[Proposal], bool] = lambda _proposal: True) -> tuple[Proposal, ...]:
    return tuple(filter(choose, _ALL))


def sound() -> Proposal:
    """The honest proposal that S23 damages."""
    return next(p for p in _ALL if p.number == "S23" and p.honest)


def damage(entry: Damage) -> bytes:
    return entry.made(sound().raw)
