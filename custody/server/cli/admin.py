"""``custody admin``: organisations and the requests for them, accounts and keys, directly in the database."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from custody.cli.common import Stop, give, give_list, json_option, own_answers, wants_json
from custody.common.terminal import aside, put, say
from custody.common.text import count
from custody.server.cli.common import CHAINS, MAX_INT64, refusals, services_at, state_option, stored_at
from multisig.network import Network

if TYPE_CHECKING:
    from custody.schemas.onboarding import OnboardingRequest
    from custody.server.services import Services
    from custody.server.settings import Settings
    from custody.server.setup import NewPerson, Placement


def person_options(command: Callable[..., None]) -> Callable[..., None]:
    """``--email``, ``--first-name``, ``--surname`` and ``--two-factor``."""
    for option in (
        click.option(
            "--two-factor/--no-two-factor", default=True, help="Ask for a mailed code at each sign-in."
        ),
        click.option("--surname", help="Shown to other members."),
        click.option("--first-name", help="Shown to other members."),
        click.option("--email", required=True, help="The person's e-mail address: the name to sign in with."),
    ):
        command = option(command)
    return command


@click.group()
def admin() -> None:
    """Organisations, accounts and keys, directly in the database."""


@admin.command("bootstrap")
@state_option
@click.option("--organisation", required=True, help="The organisation's name.")
@click.option("--workspace", required=True, help="The first workspace's name.")
@click.option(
    "--chain",
    required=True,
    type=click.Choice(CHAINS),
    help="The chain of the workspace; all but mainnet are 'testnet' in the API.",
)
@person_options
@json_option
def bootstrap_command(state: Path, organisation: str, workspace: str, chain: str, **person: Any) -> None:
    """Create an organisation with its first workspace and administrator.

    The password is asked for, or read from the standard input's first line; never give it as an argument.
    """
    from custody.server.rules.roles import ADMINISTRATOR
    from custody.server.settings import Settings
    from custody.server.setup import NewOrganisation, bootstrap

    with services_at(state, new=True) as services:
        names = NewOrganisation(organisation=organisation, workspace=workspace)
        placed = bootstrap(services, names, Network(chain), _person(services, person))
        _warn_without_backend(Settings(state=state), Network(chain))
    _tell(placed, ADMINISTRATOR.name, person["email"])


def _warn_without_backend(settings: "Settings", chain: Network) -> None:
    """A workspace may be made before its node is configured; without the warning, an operator could wait for
    deposits in vain.
    """
    from custody.server.chain.configuration import PREFIX

    if chain not in {source.network for source in settings.chains}:
        setting = f"{PREFIX}{chain.name}"
        aside(
            f"Warning: no backend for {chain} is configured: nothing is seen there, and nothing is sent.\n"
            f"  Set {setting} before custody serve: "
            "the page 'The chain' of the documentation has the settings."
        )


@admin.command("add-member")
@state_option
@click.option("--workspace-id", required=True, type=int, help="The workspace's id.")
@person_options
@click.option("--role", default="Signer", help="The name of a role of that workspace.")
@json_option
def add_member_command(state: Path, workspace_id: int, role: str, **person: Any) -> None:
    """Add a person to a workspace. An address without an account gets one, with a password as in
    bootstrap.
    """
    from custody.server.setup import add_member

    with services_at(state) as services:
        placed = add_member(services, workspace_id, role, _person(services, person))
    _tell(placed, role, person["email"])


@admin.command("make-operator")
@state_option
@click.argument("email", help="The e-mail address of an account.")
@click.option("--take-away", is_flag=True, help="Make it an ordinary account again.")
@json_option
def make_operator_command(state: Path, email: str, take_away: bool) -> None:
    """Let a person review requests for organisations. It gives no access to any workspace."""
    from custody.server.setup import make_operator

    with services_at(state) as services:
        user_id = make_operator(services, email, is_operator=not take_away)
    give(
        {"user_id": user_id, "is_operator": not take_away},
        f"{email} (user {user_id}) is {'no longer an operator' if take_away else 'an operator'}.",
    )


@admin.command("rescan")
@state_option
@click.option("--vault", required=True, help="The vault's id.")
@click.option(
    "--addresses", type=int, default=1_000, help="How many of its addresses are watched from now on."
)
@json_option
def rescan_command(state: Path, vault: str, addresses: int) -> None:
    """Find payments to a vault beyond the gap limit: to an address far behind the last one that was used."""
    from custody.server.vaults.calls import rescan

    with services_at(state) as services:
        rescan(services, vault, addresses)
    give(
        {"vault_id": vault, "addresses": addresses},
        f"The first {count(addresses, 'address', 'addresses')} of vault {vault} will be watched.",
        "The next look at the chain reads them.",
    )


@admin.command("revoke-key")
@state_option
@click.option("--key-id", required=True, help="The key's id, as it stands among a vault's signers.")
@click.option(
    "--reason",
    required=True,
    type=click.Choice(("superseded", "lost")),
    help="Whether another device took its place, or it is lost.",
)
@click.option("--force", is_flag=True, help="Even where a vault is left with too few signers.")
@json_option
def revoke_key_command(state: Path, key_id: str, reason: str, force: bool) -> None:
    """Revoke a key for good. Pending proposals that a lost key approved need another approval."""
    from custody.schemas.keys import RevokeKeyRequest
    from custody.server.calls import In, context_in
    from custody.server.keys.revocation import revoke_key
    from custody.server.rules.credentials import OPERATOR

    request = RevokeKeyRequest(key_id=key_id, reason=reason, force=force)
    with services_at(state) as services, context_in(services, OPERATOR, In.WRITE) as ctx:
        key = revoke_key(ctx, request)
    give(key, f"Key {key.id} of user {key.user_id} is revoked: {key.revoked_reason.value}.")


@admin.command("webhook-secret")
@state_option
@click.option(
    "--set", "take", is_flag=True, help="Take the key that the provider issued, from the standard input."
)
def webhook_secret_command(state: Path, take: bool) -> None:
    """Print the secret with which the purchase provider signs its webhooks, and nothing else."""
    from custody.server.purchases import adopt_key, webhook_key
    from custody.server.secrets import Purpose

    with services_at(state, new=True) as services:
        if take:
            adopt_key(services, own_answers().secret("The provider's key"))
            return
        put(webhook_key(services.tools.secrets.of(Purpose.PURCHASE_WEBHOOK)[0]))


def _person(services: "Services", given: dict[str, Any]) -> "NewPerson":
    """``given``: by ``person_options``."""
    from custody.server.setup import NewPerson, has_account, require_password

    person = NewPerson(**given)
    if has_account(services, person.email):
        return person

    def fault(password: str) -> str | None:
        try:
            with refusals():
                require_password(NewPerson(**given, password=password))
        except Stop as error:
            return error.message
        return None

    return NewPerson(**given, password=own_answers().secret("Password", fresh=True, fault=fault))


def _tell(placed: "Placement", role: str, email: str) -> None:
    give(
        vars(placed),
        f"{email} is user {placed.user_id}, {role} (role {placed.role_id}) of workspace "
        f"{placed.workspace_id} "
        f"in organisation {placed.organisation_id}.",
    )


# A copy of `custody.server.secrets.Purpose`, so that help does not load it; a test compares them.
PURPOSES = ("totp", "purchase-webhook", "checkpoint", "webhook", "identity-provider")


@admin.command("reset-two-factor")
@click.argument("email", help="The person's e-mail address.")
@state_option
@json_option
def reset_two_factor_command(email: str, state: Path) -> None:
    """Set an account back to mailed codes after its owner lost the authenticator and the recovery codes.
    Make sure that it is the owner who asks: afterwards the mailbox and the password open the account.
    """
    from custody.server.calls import In, context_in
    from custody.server.rules.credentials import OPERATOR
    from custody.server.sign_in.second_factor import reset_second_factor

    address = email.strip().lower()
    with services_at(state) as services, context_in(services, OPERATOR, In.WRITE) as ctx:
        reset_second_factor(ctx, address)
    give(
        {"email": address, "method": "email"},
        f"{address} signs in with mailed codes now; the authenticator and its recovery codes are forgotten.",
    )


@admin.command("rotate-secret")
@click.argument("purpose", type=click.Choice(PURPOSES), help="What the secret is for.")
@state_option
@click.option(
    "--finish",
    "finish",
    is_flag=True,
    help="Make no new one: forget the older ones, which are no longer used.",
)
@json_option
def rotate_secret_command(purpose: str, state: Path, finish: bool) -> None:
    """Make a new secret of the platform's own, while servers run.
    Older ones still read what was made with them, until --finish. Secrets of authenticators, webhooks and
    identity providers are re-encrypted at once, and the old one is dropped. It is safe to run again after an
    interruption.
    """
    from custody.server.rotation import drop_old, rotate
    from custody.server.secrets import Purpose

    secret = Purpose(purpose)
    with services_at(state) as services:
        tools = services.tools
        done = (drop_old if finish else rotate)(services.store, tools.audit, tools.secrets, secret)
    sealed_of = {
        Purpose.TOTP: ("account was", "accounts were"),
        Purpose.WEBHOOK: ("webhook was", "webhooks were"),
        Purpose.IDENTITY_PROVIDER: ("identity provider was", "identity providers were"),
    }
    what = sealed_of.get(secret)
    sealed = f" {count(done.reencrypted, *what)} encrypted anew." if what else ""
    said = "No new" if finish else "A new"
    words = (
        f"{said} {purpose} secret.{sealed} Old ones dropped: {done.dropped}, still read: {done.still_read}."
    )
    give(done, words)


# A copy of `custody.schemas.onboarding.OnboardingStatus`: help loads no schema, and a test compares them.
STATUSES = ("pending", "approved", "rejected")


uid_argument = click.argument(
    "uid",
    type=click.IntRange(min=1, max=MAX_INT64),
    help="The request's uid, as listed by custody admin requests.",
)
note_option = click.option("--note", help="What the requester is told.")


@admin.command("requests")
@state_option
@click.option("--status", type=click.Choice(STATUSES), help="Only those.")
@click.option("--after", default=0, type=click.IntRange(min=0, max=MAX_INT64), help="Go on after this uid.")
@json_option
def requests_command(state: Path, status: str | None, after: int) -> None:
    """List requests for organisations, the oldest first."""
    from custody.schemas.common import MAX_ITEMS
    from custody.schemas.onboarding import OnboardingQuery, OnboardingStatus
    from custody.server.people import organisations
    from custody.server.shown import apart

    wanted = None if status is None else OnboardingStatus(status)
    query = OnboardingQuery(status=wanted, after=after or None, limit=MAX_ITEMS)
    with stored_at(state) as stored, stored.store.read() as db:
        page = organisations.page(db, query)
    header = ("UID", "STATUS", "ORGANISATION", "WORKSPACE", "NETWORK", "ASKED BY")
    readable, unreadable = apart(page.items)
    rows = (
        (str(item.uid), item.status, item.org_name, item.workspace_name, item.network, item.requester_email)
        for item in readable
    )
    give_list(page.items, header, rows, "No requests.")
    if not wants_json():
        for item in unreadable:
            aside(f"Not shown: request {item.row_id}. {item.unreadable}")
        if page.has_more:
            say(f"There are more: go on with --after {page.following('uid')}.")


@admin.command("approve")
@uid_argument
@state_option
@note_option
@click.option(
    "--chain", type=click.Choice(CHAINS), help="Only for the platform's first workspace on this network."
)
@json_option
def approve_command(uid: int, state: Path, note: str | None, chain: str | None) -> None:
    """Approve the request: the requester becomes the administrator of a new organisation and workspace."""
    decided = _decide(state, uid, "approve", note, None if chain is None else Network(chain))
    organisation = decided.created_org_uid.value
    words = f"Request {uid} is approved: {decided.requester_email} runs organisation {organisation}."
    give(decided, words)


@admin.command("reject")
@uid_argument
@state_option
@note_option
@json_option
def reject_command(uid: int, state: Path, note: str | None) -> None:
    """Reject the request; the requester is mailed the note."""
    decided = _decide(state, uid, "reject", note, None)
    give(decided, f"Request {uid} is rejected, and {decided.requester_email} will be told.")


def _decide(
    state: Path, uid: int, decision: Literal["approve", "reject"], note: str | None, chain: Network | None
) -> "OnboardingRequest":
    from custody.schemas.onboarding import ReviewOnboardingRequest
    from custody.server.calls import Ctx
    from custody.server.people.organisations import decide
    from custody.server.rules.credentials import OPERATOR

    with services_at(state) as services, services.store.write() as db:
        review = ReviewOnboardingRequest(decision=decision, review_note=note)
        return decide(Ctx(services, OPERATOR, db), uid, review, chain=chain)
