"""Which part of the daemon answers each call of ``signerd.api``.

No caller's text reaches a device: each call names an operation, whose arguments are numbers and ids (L5).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

from signerd import shapes
from signerd.api.account import AccountApi, EventsApi
from signerd.api.apps import AppsApi
from signerd.api.described import described
from signerd.api.devices import DevicesApi
from signerd.api.proposals import ProposalsApi
from signerd.api.vaults import VaultsApi
from signerd.callers import CallerKind, LoopbackCaller, Right
from signerd.daemon import airgap, airgap_setup, vaults
from signerd.daemon.funds import vault_funds, vault_movements, vault_tokens
from signerd.daemon.reports import audit_entries
from signerd.daemon.service import Daemon
from signerd.errors import NotAllowed, PageNotServed, UnknownProposal
from signerd.loopback.access.sessions import ENTRY_SECONDS, PageSessions
from signerd.loopback.binding import Method
from signerd.loopback.events import EventStreamResponse, Streams

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Context:
    """The daemon and who calls it; and what the loopback itself answers or leaves out."""

    daemon: Daemon
    streams: Streams
    sessions: PageSessions
    caller: LoopbackCaller

    async def vaults(self) -> tuple[shapes.VaultView, ...]:
        """Without the right to read keys, the keys and the descriptor are left out: all addresses derive from
        them.
        """
        listed = await vaults.vaults(self.daemon, sparing=self.caller.app_id is not None)
        if Right.XPUB in self.caller.rights:
            return listed
        return tuple(vault.model_copy(update={"cosigners": (), "descriptor": None}) for vault in listed)

    async def proposals(self, *, ended: bool = False) -> tuple[shapes.ProposalLine, ...]:
        """An app finds its own imported PSBTs under ``/psbts``, and other apps' nowhere (L13)."""
        lines = await self.daemon.proposals(ended=ended, by=self.caller)
        if self.caller.app_id is None:
            return lines
        return tuple(line for line in lines if line.imported_by is None)

    async def proposal(self, psbt_id: str) -> shapes.ProposalView:
        view = await self.daemon.proposal(psbt_id, self.caller)
        if self.caller.app_id is not None and view.imported_by is not None:
            raise UnknownProposal(f"there is no proposal '{psbt_id}' here")
        return view

    async def follow(
        self, after: int | None = None, subject: str | None = None, last_event_id: int | None = None
    ) -> EventStreamResponse:
        daemon, app_id = self.daemon, self.caller.app_id
        given = last_event_id if last_event_id is not None else after
        position = daemon.feed.last if given is None else given
        gone = None if app_id is None else partial(daemon.apps.gone, app_id)
        # An app hears nothing of the PSBTs that others imported.
        hides = partial(daemon.imported.hides, self.caller)
        lines = self.streams.follow(daemon.feed, position, subject, gone, hides)
        return EventStreamResponse(lines, self.streams.admit(app_id))

    async def enter_page(self) -> shapes.PageEntry:
        """For the terminal only: a page left open must not issue codes to a passer-by."""
        if self.caller.kind is not CallerKind.TERMINAL:
            raise NotAllowed("only the command line opens the page", hint="Run `signerd open`.")
        url = self.daemon.page_address.page_url
        if url is None:
            raise PageNotServed("the page is not served")
        return shapes.PageEntry(url=url, code=self.sessions.entry(), seconds=ENTRY_SECONDS)


def row(
    call: "described[P, R]", answer: Callable[[Context], Callable[P, Awaitable[R]]]
) -> tuple["described[P, R]", Callable[[Context], Method]]:
    """Mypy compares what answers with the description: its arguments, where it is not told who calls, and
    its answer.
    """
    return call, answer


ROUTES: dict["described[..., Any]", Callable[[Context], Method]] = dict(
    (
        row(AccountApi.status, lambda to: to.daemon.status),
        row(AccountApi.sign_in, lambda to: to.daemon.sign_in),
        row(AccountApi.confirm_sign_in, lambda to: to.daemon.confirm_sign_in),
        row(AccountApi.sign_out, lambda to: to.daemon.sign_out),
        row(DevicesApi.devices, lambda to: to.daemon.devices),
        row(DevicesApi.identify_device, lambda to: partial(to.daemon.identify_device, by=to.caller)),
        row(DevicesApi.cancel_device, lambda to: to.daemon.bridge_devices.cancel),
        row(DevicesApi.another_address, lambda to: to.daemon.bridge_devices.another_address),
        row(DevicesApi.device_accounts, lambda to: partial(to.daemon.device_accounts, by=to.caller)),
        row(DevicesApi.preview_registration, lambda to: to.daemon.preview_registration),
        row(DevicesApi.register, lambda to: to.daemon.register),
        row(DevicesApi.preview_airgapped, lambda to: partial(airgap_setup.preview, to.daemon)),
        row(DevicesApi.challenge_airgapped, lambda to: partial(airgap_setup.challenge, to.daemon)),
        row(DevicesApi.register_airgapped, lambda to: partial(airgap_setup.register, to.daemon)),
        row(DevicesApi.start_unlocking, lambda to: to.daemon.unlocking.start),
        row(DevicesApi.unlocking_step, lambda to: to.daemon.unlocking.step),
        row(DevicesApi.questions, lambda to: to.daemon.unlocking.questions),
        row(DevicesApi.answer_question, lambda to: to.daemon.unlocking.answer),
        row(VaultsApi.vaults, lambda to: to.vaults),
        row(VaultsApi.vault_tokens, lambda to: partial(vault_tokens, to.daemon)),
        row(VaultsApi.vault_funds, lambda to: partial(vault_funds, to.daemon)),
        row(VaultsApi.vault_movements, lambda to: partial(vault_movements, to.daemon)),
        row(VaultsApi.preview_pin, lambda to: partial(vaults.preview_pin, to.daemon)),
        row(VaultsApi.pin, lambda to: partial(vaults.pin, to.daemon)),
        row(VaultsApi.enrolment, lambda to: partial(airgap_setup.enrolment, to.daemon)),
        row(VaultsApi.unpin, lambda to: partial(vaults.unpin, to.daemon)),
        row(VaultsApi.vault_policy, lambda to: partial(vaults.vault_policy, to.daemon)),
        row(VaultsApi.accounts, lambda to: partial(vaults.accounts, to.daemon)),
        row(VaultsApi.vault_addresses, lambda to: partial(vaults.vault_addresses, to.daemon)),
        row(
            VaultsApi.show_vault_address,
            lambda to: partial(vaults.show_vault_address, to.daemon, caller=to.caller),
        ),
        row(VaultsApi.profile_addresses, lambda to: partial(vaults.profile_addresses, to.daemon)),
        row(
            VaultsApi.show_profile_address,
            lambda to: partial(vaults.show_profile_address, to.daemon, caller=to.caller),
        ),
        row(ProposalsApi.proposals, lambda to: to.proposals),
        row(ProposalsApi.proposal, lambda to: to.proposal),
        row(ProposalsApi.approve, lambda to: partial(to.daemon.approve, by=to.caller)),
        row(ProposalsApi.decline, lambda to: partial(to.daemon.decline, by=to.caller)),
        row(ProposalsApi.export_psbt, lambda to: partial(airgap.export, to.daemon, by=to.caller)),
        row(ProposalsApi.import_answer, lambda to: partial(airgap.answer, to.daemon, by=to.caller)),
        row(ProposalsApi.inspect_psbt, lambda to: partial(to.daemon.imported.inspect, caller=to.caller)),
        row(ProposalsApi.import_psbt, lambda to: partial(to.daemon.imported.import_psbt, caller=to.caller)),
        row(ProposalsApi.imported_psbts, lambda to: partial(to.daemon.imported.all, caller=to.caller)),
        row(ProposalsApi.imported_psbt, lambda to: partial(to.daemon.imported.one, caller=to.caller)),
        row(ProposalsApi.withdraw_psbt, lambda to: partial(to.daemon.imported.withdraw, caller=to.caller)),
        row(AppsApi.ask_pairing, lambda to: to.daemon.apps.ask),
        row(AppsApi.collect_pairing, lambda to: to.daemon.apps.collect),
        row(AppsApi.pairings, lambda to: to.daemon.apps.open_requests),
        row(AppsApi.accept_pairing, lambda to: to.daemon.apps.accept),
        row(AppsApi.refuse_pairing, lambda to: to.daemon.apps.refuse),
        row(AppsApi.me, lambda to: partial(to.daemon.apps.me, to.caller)),
        row(AppsApi.apps, lambda to: to.daemon.apps.list),
        row(AppsApi.revoke_app, lambda to: to.daemon.apps.revoke),
        row(AppsApi.origins, lambda to: to.daemon.apps.list_origins),
        row(AppsApi.let_in, lambda to: to.daemon.apps.let_in),
        row(AppsApi.shut_out, lambda to: to.daemon.apps.shut_out),
        row(AccountApi.settings, lambda to: to.daemon.settings),
        row(AccountApi.verify_audit, lambda to: to.daemon.verify_audit),
        row(AccountApi.audit_entries, lambda to: partial(audit_entries, to.daemon.journal)),
        row(EventsApi.follow, lambda to: to.follow),
        row(AccountApi.enter_page, lambda to: to.enter_page),
    )
)
