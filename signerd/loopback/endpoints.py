"""The endpoints: each calls the daemon and answers in the shape that ``shapes.calls`` names.

No caller's text reaches a device: each route names an operation, whose arguments are numbers and ids (L5).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, StringConstraints
from starlette.responses import Response

from custody.schemas.history import CursorText
from multisig import RECEIVE
from signerd import shapes
from signerd.account.platform import PAGE
from signerd.callers import Caller, Kind, Right
from signerd.daemon.funds import USUAL_MOVEMENTS
from signerd.daemon.service import Daemon
from signerd.errors import NotAllowed, PageNotServed, UnknownProposal
from signerd.loopback import events
from signerd.loopback.access.sessions import ENTRY_SECONDS, Sessions
from signerd.loopback.binding import In
from signerd.loopback.events import Streams
from signerd.shapes import calls
from signerd.shapes.calls import Call

R = TypeVar("R")
Service = Annotated[Daemon, In.STATE]
# The values of ``firmware_bridge.airgap.EnrolmentForm``.
QueryForm = Annotated[Literal["coldcard", "descriptor", "bsms"], In.QUERY]
# The version of the PSBT in an answer: BIP-174 or BIP-370.
QueryVersion = Annotated[shapes.PsbtVersion, In.QUERY]
# The caller, for an endpoint that names it to the person or in the audit chain.
By = Annotated[Caller, In.CALLER]
PathId = Annotated[shapes.Id, In.PATH]
QueryId = Annotated[shapes.Id | None, In.QUERY]


@dataclass(frozen=True)
class Route(Generic[R]):
    """A call with the endpoint that answers it; mypy refuses an endpoint that returns another type."""

    call: Call[R]
    endpoint: Callable[..., Awaitable[R | Response]]

    @property
    def method(self) -> str:
        return self.call.method

    @property
    def path(self) -> str:
        return self.call.path

    @property
    def needs(self) -> Right:
        return self.call.needs

    @property
    def summary(self) -> str:
        return self.call.summary


# --- status, and the account at the platform ----------------------------------------------------------------


async def status(service: Service) -> shapes.Status:
    return await service.status()


async def sign_in(service: Service, body: shapes.SignInRequest) -> shapes.SignedIn:
    return await service.sign_in(body.email, body.password)


async def confirm_sign_in(service: Service, body: shapes.CodeRequest) -> shapes.SignedIn:
    return await service.confirm_sign_in(body.code)


async def sign_out(service: Service) -> None:
    await service.sign_out()


# --- devices, what they do by hand, and registering the keys of one -----------------------------------------


async def devices(service: Service) -> tuple[shapes.DeviceView, ...]:
    return await service.devices()


async def identify_device(service: Service, caller: By, device_id: PathId) -> None:
    await service.handling.identify(device_id, caller)


async def cancel_device(service: Service, device_id: PathId) -> None:
    await service.handling.cancel(device_id)


async def another_address(service: Service, device_id: PathId) -> None:
    await service.handling.another_address(device_id)


async def device_accounts(
    service: Service, caller: By, device_id: PathId, body: shapes.AccountRequest
) -> shapes.AccountKeys:
    return await service.handling.account_keys(device_id, body.account, caller)


async def preview_registration(service: Service, device: QueryId = None) -> shapes.RegistrationPreview:
    return await service.preview_registration(device)


async def register(service: Service, body: shapes.RegisterRequest) -> shapes.Registered:
    return await service.register(body.device_id, body.digest, replace=body.replace)


async def preview_airgapped(service: Service, body: shapes.AirgapKeysRequest) -> shapes.RegistrationPreview:
    return await service.airgap_setup.preview(body.exports)


async def challenge_airgapped(
    service: Service, body: shapes.AirgapChallengeRequest
) -> shapes.AirgapChallenge:
    return await service.airgap_setup.challenge(body.exports, body.digest)


async def register_airgapped(service: Service, body: shapes.AirgapRegisterRequest) -> shapes.Registered:
    return await service.airgap_setup.register(
        body.exports, body.digest, body.challenge, body.signature, replace=body.replace
    )


# --- unlocking a device, and what it asks the person meanwhile ----------------------------------------------


async def start_unlocking(service: Service, device_id: PathId) -> shapes.UnlockStep:
    return await service.unlocking.start(device_id)


async def unlocking_step(service: Service, device_id: PathId) -> shapes.UnlockStep:
    return await service.unlocking.step(device_id)


async def questions(service: Service) -> tuple[shapes.QuestionView, ...]:
    return await service.unlocking.questions()


async def answer_question(
    service: Service, question_id: PathId, body: shapes.QuestionAnswer
) -> shapes.UnlockStep:
    return await service.unlocking.answer(question_id, body.answer)


# --- vaults and their pins ----------------------------------------------------------------------------------


async def vaults(service: Service, caller: By) -> tuple[shapes.VaultView, ...]:
    """Without the right to read keys, the keys and the descriptor are left out: all addresses derive from
    them.
    """
    found = await service.vaults(sparing=caller.app_id is not None)
    if Right.XPUB in caller.rights:
        return found
    return tuple(vault.model_copy(update={"cosigners": (), "descriptor": None}) for vault in found)


async def preview_pin(
    service: Service, vault_id: PathId, body: shapes.PinPreviewRequest
) -> shapes.PinPreview:
    return await service.preview_pin(vault_id, body.imported)


async def pin(service: Service, vault_id: PathId, body: shapes.PinRequest) -> shapes.VaultView:
    return await service.pin(
        vault_id,
        body.code,
        imported=body.imported,
        without_device_address=body.without_device_address,
        airgapped=body.airgapped,
    )


async def enrolment(service: Service, vault_id: PathId, form: QueryForm = "coldcard") -> shapes.EnrolmentFile:
    return await service.airgap_setup.enrolment(vault_id, form)


async def unpin(service: Service, vault_id: PathId, body: shapes.UnpinRequest) -> shapes.VaultView:
    return await service.unpin(vault_id, body.code)


async def tokens(service: Service, vault_id: PathId) -> shapes.VaultTokens:
    """Asked of the platform each time."""
    return await service.tokens.of_vault(vault_id)


async def funds(service: Service, vault_id: PathId) -> shapes.VaultFunds:
    return await service.funds.of_vault(vault_id)


Cursor = Annotated[CursorText | None, In.QUERY]
Day = Annotated[date | None, In.QUERY]
SearchText = Annotated[str, StringConstraints(strip_whitespace=True, max_length=100), In.QUERY]
MovementCount = Annotated[int, Field(ge=1, le=PAGE), In.QUERY]


async def movements(
    service: Service,
    vault_id: PathId,
    cursor: Cursor = None,
    since: Day = None,
    before: Day = None,
    search: SearchText = "",
    limit: MovementCount = USUAL_MOVEMENTS,
) -> shapes.VaultMovements:
    """The newest first; days are in UTC, and ``before`` is exclusive."""
    return await service.movements.of_vault(
        vault_id, cursor=cursor, since=since, before=before, search=search, limit=limit
    )


# --- accounts and addresses of this signer, and their addresses on the device's screen ----------------------

QueryChain = Annotated[shapes.Chain, In.QUERY]
QueryStart = Annotated[shapes.Index, In.QUERY]
QueryCount = Annotated[shapes.Count, In.QUERY]
# A screenful.
USUAL_COUNT = 10


async def accounts(service: Service) -> shapes.AccountKeys:
    return await service.addresses.accounts()


async def vault_addresses(
    service: Service,
    vault_id: PathId,
    chain: QueryChain = RECEIVE,
    start: QueryStart = 0,
    count: QueryCount = USUAL_COUNT,
) -> shapes.AddressPage:
    return await service.addresses.of_vault(vault_id, chain, start, count)


async def profile_addresses(
    service: Service, chain: QueryChain = RECEIVE, start: QueryStart = 0, count: QueryCount = USUAL_COUNT
) -> shapes.AddressPage:
    return await service.addresses.of_profile(chain, start, count)


async def show_vault_address(
    service: Service, caller: By, vault_id: PathId, body: shapes.ShowAddressRequest
) -> shapes.AddressShown:
    return await service.addresses.show_of_vault(vault_id, body.chain, body.index, caller)


async def show_profile_address(
    service: Service, caller: By, body: shapes.ShowAddressRequest
) -> shapes.AddressShown:
    return await service.addresses.show_of_profile(body.chain, body.index, caller)


# --- proposals: seen, approved, declined --------------------------------------------------------------------


async def proposals(
    service: Service, caller: By, ended: Annotated[bool, In.QUERY] = False
) -> tuple[shapes.ProposalLine, ...]:
    """An app finds its own imported PSBTs under ``/psbts``, and other apps' nowhere (L13)."""
    lines = await service.proposals(ended=ended, by=caller)
    return lines if caller.app_id is None else tuple(line for line in lines if line.imported_by is None)


async def proposal(service: Service, caller: By, psbt_id: PathId) -> shapes.ProposalView:
    view = await service.proposal(psbt_id, caller)
    if caller.app_id is not None and view.imported_by is not None:
        raise UnknownProposal(f"there is no proposal '{psbt_id}' here")
    return view


async def approve(
    service: Service, caller: By, psbt_id: PathId, body: shapes.ApproveRequest
) -> shapes.ProposalLine:
    return await service.approve(psbt_id, body.digest, body.acknowledged, caller)


async def reject(
    service: Service, caller: By, psbt_id: PathId, body: shapes.RejectRequest
) -> shapes.ProposalLine:
    return await service.reject(psbt_id, body.reason, caller)


async def export_psbt(
    service: Service, caller: By, psbt_id: PathId, version: QueryVersion = "0"
) -> shapes.ExportedPsbt:
    return await service.airgap.export(psbt_id, caller, version)


async def import_answer(service: Service, caller: By, body: shapes.AnswerRequest) -> shapes.ProposalLine:
    return await service.airgap.answer(body.psbt, caller)


# --- PSBTs imported by an app or by the person, unknown to the platform -------------------------------------


async def inspect_psbt(service: Service, caller: By, body: shapes.PsbtRequest) -> shapes.PsbtReview:
    return await service.imported.inspect(body.psbt, caller)


async def import_psbt(service: Service, caller: By, body: shapes.PsbtRequest) -> shapes.ImportedView:
    return await service.imported.import_psbt(body.psbt, caller)


async def imported_psbts(service: Service, caller: By) -> tuple[shapes.ImportedLine, ...]:
    return await service.imported.all(caller)


async def imported_psbt(
    service: Service, caller: By, psbt_id: PathId, version: QueryVersion = "0"
) -> shapes.ImportedView:
    return await service.imported.one(psbt_id, caller, version)


async def withdraw_psbt(service: Service, caller: By, psbt_id: PathId) -> shapes.ImportedLine:
    return await service.imported.withdraw(psbt_id, caller)


# --- pairing: an app asks and collects, the person answers; paired apps, and the origins that may ask -------

# As a browser sends it; other programs send none.
Origin = Annotated[str | None, In.HEADER]
QueryOrigin = Annotated[shapes.OriginText, In.QUERY]


async def ask(service: Service, body: shapes.PairingRequest, origin: Origin = None) -> shapes.Pairing:
    return await service.apps.ask(body.name, body.rights, origin)


async def collect(service: Service, pairing_id: PathId, body: shapes.CollectRequest) -> shapes.Collected:
    return await service.apps.collect(pairing_id, body.secret)


async def open_requests(service: Service) -> tuple[shapes.OpenPairing, ...]:
    return await service.apps.open_requests()


async def accept(service: Service, pairing_id: PathId, body: shapes.AcceptRequest) -> shapes.OpenPairing:
    return await service.apps.accept(pairing_id, body.code, rights=body.rights, days=body.days)


async def refuse(service: Service, pairing_id: PathId) -> shapes.OpenPairing:
    return await service.apps.refuse(pairing_id)


async def me(service: Service, caller: By) -> shapes.Me:
    return await service.apps.me(caller)


async def apps(service: Service) -> tuple[shapes.AppView, ...]:
    return await service.apps.list()


async def revoke(service: Service, app_id: PathId) -> shapes.AppView:
    return await service.apps.revoke(app_id)


async def origins(service: Service) -> tuple[shapes.OriginView, ...]:
    return await service.apps.list_origins()


async def let_in(service: Service, body: shapes.LetInRequest) -> shapes.OriginView:
    return await service.apps.let_in(body.origin, body.minutes)


async def shut_out(service: Service, origin: QueryOrigin) -> shapes.OriginView:
    return await service.apps.shut_out(origin)


# --- what this machine was told to do -----------------------------------------------------------------------


async def settings(service: Service) -> shapes.SettingsView:
    return await service.settings.shown()


# --- what happened, and what happens ------------------------------------------------------------------------

# The largest SQLite integer.
MAX_POSITION = 2**63 - 1


# The default page for a person, and the largest that a program may fetch.
USUAL_ENTRIES, MOST_ENTRIES = 50, 500

Search = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), In.QUERY]
Limit = Annotated[int, Field(ge=1, le=MOST_ENTRIES), In.QUERY]
Position = Annotated[int | None, Field(ge=0, le=MAX_POSITION), In.QUERY]
LastEventId = Annotated[int | None, Field(ge=0, le=MAX_POSITION), In.HEADER]


async def verify_audit(service: Service) -> shapes.AuditReport:
    return await service.verify_audit()


async def audit_entries(
    service: Service,
    after: Position = None,
    before: Position = None,
    search: Search = "",
    limit: Limit = USUAL_ENTRIES,
) -> shapes.AuditPage:
    """The newest first, below ``before`` where given; with ``after``, in the chain's order from there."""
    return await service.history.entries(search=search, limit=limit, after=after, before=before)


async def follow(
    service: Service,
    caller: By,
    streams: Annotated[Streams, In.STATE],
    after: Position = None,
    subject: QueryId = None,
    last_event_id: LastEventId = None,
) -> events.Following:
    """From ``Last-Event-ID`` or ``after`` where given, else from now on."""
    given = last_event_id if last_event_id is not None else after
    position = service.feed.last if given is None else given
    gone = None if caller.app_id is None else partial(service.apps.gone, caller.app_id)
    hides = partial(_hidden_from, service, caller)
    lines = streams.follow(service.feed, position, subject, gone, hides)
    return events.Following(lines, streams.admit(caller.app_id))


def _hidden_from(service: Service, caller: Caller, subject: str) -> bool:
    """An app hears nothing of the PSBTs that others imported."""
    return caller.app_id is not None and service.imported.hides(caller, subject)


# --- the way to the page, for the person at the terminal ----------------------------------------------------


async def enter_page(
    service: Service, sessions: Annotated[Sessions, In.STATE], caller: By
) -> shapes.PageEntry:
    """For the terminal only: a page left open must not issue codes to a passer-by."""
    if caller.kind is not Kind.TERMINAL:
        raise NotAllowed("only the command line opens the page", hint="Run `signerd open`.")
    url = service.page_address.page_url
    if url is None:
        raise PageNotServed("the page is not served")
    return shapes.PageEntry(url=url, code=sessions.entry(), seconds=ENTRY_SECONDS)


ROUTES: tuple[Route[Any], ...] = (
    Route(calls.STATUS, status),
    Route(calls.SIGN_IN, sign_in),
    Route(calls.CONFIRM_SIGN_IN, confirm_sign_in),
    Route(calls.SIGN_OUT, sign_out),
    Route(calls.DEVICES, devices),
    Route(calls.IDENTIFY_DEVICE, identify_device),
    Route(calls.CANCEL_DEVICE, cancel_device),
    Route(calls.ANOTHER_ADDRESS, another_address),
    Route(calls.DEVICE_ACCOUNTS, device_accounts),
    Route(calls.PREVIEW_REGISTRATION, preview_registration),
    Route(calls.REGISTER, register),
    Route(calls.PREVIEW_AIRGAPPED, preview_airgapped),
    Route(calls.CHALLENGE_AIRGAPPED, challenge_airgapped),
    Route(calls.REGISTER_AIRGAPPED, register_airgapped),
    Route(calls.START_UNLOCKING, start_unlocking),
    Route(calls.UNLOCKING_STEP, unlocking_step),
    Route(calls.QUESTIONS, questions),
    Route(calls.ANSWER_QUESTION, answer_question),
    Route(calls.VAULTS, vaults),
    Route(calls.VAULT_TOKENS, tokens),
    Route(calls.VAULT_FUNDS, funds),
    Route(calls.VAULT_MOVEMENTS, movements),
    Route(calls.PREVIEW_PIN, preview_pin),
    Route(calls.PIN, pin),
    Route(calls.ENROLMENT, enrolment),
    Route(calls.UNPIN, unpin),
    Route(calls.ACCOUNTS, accounts),
    Route(calls.VAULT_ADDRESSES, vault_addresses),
    Route(calls.SHOW_VAULT_ADDRESS, show_vault_address),
    Route(calls.PROFILE_ADDRESSES, profile_addresses),
    Route(calls.SHOW_PROFILE_ADDRESS, show_profile_address),
    Route(calls.PROPOSALS, proposals),
    Route(calls.PROPOSAL, proposal),
    Route(calls.APPROVE, approve),
    Route(calls.REJECT, reject),
    Route(calls.EXPORT_PSBT, export_psbt),
    Route(calls.IMPORT_ANSWER, import_answer),
    Route(calls.INSPECT_PSBT, inspect_psbt),
    Route(calls.IMPORT_PSBT, import_psbt),
    Route(calls.IMPORTED_PSBTS, imported_psbts),
    Route(calls.IMPORTED_PSBT, imported_psbt),
    Route(calls.WITHDRAW_PSBT, withdraw_psbt),
    Route(calls.ASK_PAIRING, ask),
    Route(calls.COLLECT_PAIRING, collect),
    Route(calls.PAIRINGS, open_requests),
    Route(calls.ACCEPT_PAIRING, accept),
    Route(calls.REFUSE_PAIRING, refuse),
    Route(calls.ME, me),
    Route(calls.APPS, apps),
    Route(calls.REVOKE_APP, revoke),
    Route(calls.ORIGINS, origins),
    Route(calls.LET_IN, let_in),
    Route(calls.SHUT_OUT, shut_out),
    Route(calls.SETTINGS, settings),
    Route(calls.VERIFY_AUDIT, verify_audit),
    Route(calls.AUDIT_ENTRIES, audit_entries),
    Route(calls.EVENTS, follow),
    Route(calls.ENTER_PAGE, enter_page),
)
