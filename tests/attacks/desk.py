"""A signer's desk under attack: a real daemon on its socket, a hostile platform, and a virtual device behind
the real bridge.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from custody.schemas.proposals import ProposalStatus
from firmware_bridge import Family
from multisig import OriginKey, Vault
from signerd.client import DaemonClient
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.core.tokens import ModelScreen
from signerd.core.values import OwnKey, Pin, Snapshot
from signerd.daemon.service import Daemon
from signerd.errors import SignerdError, UnknownProposal
from signerd.journal import Journal
from signerd.shapes import ProposalView
from tests.attacks.cases import Proposal, proposals, shown_of, snapshot, sound
from tests.attacks.people import ALICE, NAME, VAULT, VAULT_ID, WORKSPACE
from tests.attacks.recipes.scene import story
from tests.conformance import makes, rigs
from tests.conformance.makes import Make, Shown, enrol
from tests.conformance.rigs import NETWORK, Rig, Seed, bridged
from tests.support.daemons import daemon_at, make_config
from tests.support.fake_platform import FakePlatform
from tests.support.served import Served, brief_sleep, served
from tests.support.wallets import Keys

AT_REST = (State.SUBMITTED, State.INTERRUPTED, State.REFUSED, State.QUARANTINED)
# The attacks of which some are about a token.
OF_TOKENS = {"S6", "S12", "S13", "S27", "S28"}
LOOKED_AT = (State.REFUSED, State.WAITING_PERSON)
# What the platform says of another proposal, by the state that this machine must give it.
SAYS = {"confirmed": ProposalStatus.CONFIRMED, "withdrawn": ProposalStatus.CANCELLED}


@dataclass
class HostilePlatform(FakePlatform):
    """It shows the vault as ``claimed``."""

    vault: Vault = VAULT
    signer: Keys = ALICE
    claimed: str = VAULT.descriptor

    @property
    def ids(self) -> set[str]:
        """The ids under which it shows the vault, of which there may be several (S26)."""
        return {VAULT_ID, *(shown["id"] for shown in self.bad_vaults)}

    def _vault(self) -> dict[str, Any]:
        return {**super()._vault(), "descriptor": self.claimed, "chain": str(NETWORK), "name": NAME}


@dataclass
class Desk:
    """The daemon, platform and device of a test."""

    served: Served
    platform: HostilePlatform
    rig: Rig

    @property
    def state(self) -> Path:
        return self.served.state

    @property
    def shown(self) -> Shown:
        """What the device shows from now on."""
        return Shown(self.rig)

    @property
    def screen(self) -> ModelScreen | None:
        """What this machine knows of the device's screen."""
        return self.served.on_loop(self._screen)

    def _screen(self) -> ModelScreen | None:
        return self.served.service.journal.review_context(sound().snapshot()).screen

    def cut_off(self, view: ProposalView) -> set[str]:
        """The hold where the device shows too little of a token's data: of the makes here a Trezor One alone
        does.
        """
        tokens = () if view.money is None else (data.token for data in view.money.data if data.token)
        hidden = {part for token in tokens for part in token.not_on_screen} - {"contract", "bytecode hash"}
        if self.rig.family is not Family.TREZOR:
            assert hidden == set()
        return {"token-not-on-screen"} if hidden else set()

    def client(self) -> DaemonClient:
        return self.served.client()

    def submitted(self, psbt_id: str) -> int:
        return len(self.platform.signatures(psbt_id))

    def offer(self, shown: Snapshot) -> ProposalView:
        """The platform proposes it; returns what the person is shown after its review."""
        if shown.vault_id not in self.platform.ids:
            self.platform.bad_vaults.append({**self.platform._vault(), "id": shown.vault_id})
        self.platform.proposals[shown.psbt_id] = shown
        try:
            self.await_state(shown.psbt_id, *LOOKED_AT)
        except AssertionError:
            # The next one is to be judged by itself.
            del self.platform.proposals[shown.psbt_id]
            raise
        with self.client() as client:
            return client.proposal(shown.psbt_id)

    def show_again(self, shown: Snapshot) -> None:
        """The platform shows something else under the same id, and the daemon has polled it."""
        self.platform.proposals[shown.psbt_id] = shown
        self.rounds(2)

    def rounds(self, number: int) -> None:
        """Waits until the daemon has polled so many times more."""
        heard = self.served.service.follower
        after = heard.rounds + number
        self.served.until(lambda: heard.rounds >= after)

    def approve(self, view: ProposalView, *acknowledged: str) -> str | None:
        """The person approves what was shown. Returns the error's code, or None after the approval has taken
        its course.
        """
        refused = self.say_yes(view, *acknowledged)
        if refused is not None:
            return refused
        self.await_state(view.psbt_id, *AT_REST)
        return None

    def say_yes(self, view: ProposalView, *acknowledged: str) -> str | None:
        """As ``approve``, without waiting for what follows."""
        try:
            with self.client() as client:
                client.approve(view.psbt_id, view.digest, acknowledged)
        except SignerdError as error:
            return error.code
        return None

    def await_state(self, psbt_id: str, *states: State) -> None:
        try:
            self.served.until(lambda: self._state(psbt_id) in states)
        except TimeoutError:
            seen = self.state_of(psbt_id)
            raise AssertionError(f"{psbt_id} did not become {states}, but {seen}") from None

    def state_of(self, psbt_id: str) -> State | None:
        return self.served.on_loop(self._state, psbt_id)

    def _state(self, psbt_id: str) -> State | None:
        try:
            return self.served.service.journal.record(psbt_id).state
        except UnknownProposal:
            return None

    def clear(self, psbt_id: str) -> None:
        """Removes the proposal, so that no later poll or lookup meets it."""
        known = self.platform.proposals.get(psbt_id)
        if known is not None:
            signed = self.submitted(psbt_id)
            status = ProposalStatus.CONFIRMED if signed else ProposalStatus.EXPIRED
            self.platform.proposals[psbt_id] = replace(known, status=status, confirmations=6 * signed)


def in_turn(cases: Sequence[Any]) -> list[tuple[Any, Make]]:
    """Assigns the makes to the cases in turn, and groups the cases by make."""
    turns = len(makes.VIRTUAL)
    return [(case, make) for first, make in enumerate(makes.VIRTUAL) for case in cases[first::turns]]


def named(value: object) -> str:
    """The pytest id of a case or a make."""
    return makes.named(value) if isinstance(value, Make) else str(value)


def at_desks(name: str, cases: Sequence[Any]) -> pytest.MarkDecorator:
    """Each case at the desk of one make. Without the scope each would get a desk, a daemon and a device of
    its own.
    """
    return pytest.mark.parametrize(
        (name, "desk"), in_turn(cases), indirect=["desk"], scope="module", ids=named
    )


def prepare(state: Path, around: Mapping[str, Any]) -> None:
    """A machine that knows what the case says: usually Alice's registered keys and the pinned vault."""
    own = OriginKey.parse(around["own"], NETWORK) if "own" in around else ALICE.vault_key()
    keys = (OwnKey(own, "vault", 0), OwnKey(ALICE.profile().key, "profile", 0))
    with Journal(state, network=NETWORK) as journal:
        journal.add_own_keys(keys, "key-1", Note("registered", "key-1"))
        if around.get("pinned", True):
            workspace = around.get("workspace", WORKSPACE)
            pin = Pin(VAULT_ID, workspace, NAME, VAULT, ALICE.vault_key())
            journal.add_pin(pin, Note("pinned", VAULT_ID))


@contextmanager
def desk_with(
    make: Make,
    folder: Path,
    around: Mapping[str, Any] | None = None,
    seed: Seed = ALICE.seed,
    **platform: Any,
) -> Iterator[Desk]:
    """``folder`` has a short name, for there are sockets in it. A device of a cosigner knows the vault."""
    state, place = folder / "state", folder / "platform"
    for path in (state, place):
        path.mkdir(mode=0o700)
    told = around or {}
    prepare(state, told)
    tokens = (
        (p.snapshot().contract_uid, shown_of(p.platform)) for p in proposals(lambda p: p.number in OF_TOKENS)
    )
    published = {uid: what for uid, what in tokens if uid is not None and what is not None}
    claimed = told.get("claimed", VAULT.descriptor)
    hostile = HostilePlatform(
        place, claimed=claimed, replaced_by=told.get("replaced_by"), published=published, **platform
    )
    rig = make.rig(folder, seed=seed)

    @asynccontextmanager
    async def service() -> AsyncIterator[Daemon]:
        async with bridged(rig, deadlines=rigs.QUICK) as (bridge, [device]):
            if VAULT.cosigner_for(seed.fingerprint) is not None:
                await enrol(bridge, device, VAULT)
            config = make_config(network=str(NETWORK))
            async with daemon_at(state, hostile, bridge, config=config, sleep=brief_sleep) as daemon:
                yield daemon

    with served(service(), state) as found:
        desk = Desk(found, hostile, rig)
        if seed is ALICE.seed and told.get("pinned", True) and "own" not in told:
            # What the device shows is known before anything is proposed.
            found.until(lambda: desk._screen() is not None)
        yield desk


def assert_signed(desk: Desk, proposal: Proposal) -> None:
    view = desk.offer(proposal.snapshot())
    shown = desk.shown
    assert set(view.to_acknowledge) == desk.cut_off(view)
    assert desk.approve(view, *view.to_acknowledge) is None
    assert shown.prompts
    assert desk.submitted(proposal.psbt_id) == 1


def set_neighbours(desk: Desk, proposal: Proposal) -> None:
    """Put the other proposals of a case where they must stand: judged, or signed here, whatever is said of
    them then.
    """
    for number, other in enumerate(proposal.others):
        told = {**story(other.psbt), **other.tells}
        shown, token = snapshot(f"other-{number}", other.psbt.to_bytes(), told), shown_of(told)
        if token is not None and shown.contract_uid is not None:
            desk.platform.published[shown.contract_uid] = token
        view = desk.offer(shown)
        if other.signed:
            assert desk.approve(view, *view.to_acknowledge) is None
        if other.state in SAYS:
            desk.platform.proposals[shown.psbt_id] = replace(shown, status=SAYS[other.state], confirmations=1)
            desk.await_state(shown.psbt_id, State(other.state))
