"""``custody admin``: organisations and people, straight in the database."""

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from custody.server.cli.common import AsJson, State, platform_at, read_password, read_secret, refusals
from multisig import Network

if TYPE_CHECKING:
    from custody.schemas.keys import RevokeKeyRequest
    from custody.server.app import Platform, Settings
    from custody.server.service.people.setup import NewPerson, Placed

app = typer.Typer(
    no_args_is_help=True, help="Organisations and people, straight in the database.", rich_markup_mode=None
)

Email = Annotated[str, typer.Option(help="The person's e-mail address: the name to sign in with.")]
FirstName = Annotated[str | None, typer.Option(help="Shown to other members.")]
Surname = Annotated[str | None, typer.Option(help="Shown to other members.")]
TwoFactor = Annotated[bool, typer.Option(help="Ask for a mailed code at each sign-in.")]


class Chain(StrEnum):
    """The chains that a workspace can be on."""

    MAINNET = Network.MAINNET
    TESTNET4 = Network.TESTNET4
    SIGNET = Network.SIGNET
    REGTEST = Network.REGTEST


class Reason(StrEnum):
    """Why a key is revoked."""

    SUPERSEDED = "superseded"
    LOST = "lost"


@app.command("bootstrap")
def bootstrap_command(
    state: State,
    organisation: Annotated[str, typer.Option(help="The organisation's name.")],
    workspace: Annotated[str, typer.Option(help="The first workspace's name.")],
    chain: Annotated[
        Chain, typer.Option(help="The chain of the workspace; all but mainnet are 'testnet' in the API.")
    ],
    email: Email,
    first_name: FirstName = None,
    surname: Surname = None,
    two_factor: TwoFactor = True,
    as_json: AsJson = False,
) -> None:
    """Creates an organisation with its first workspace and administrator.

    The password is asked for, or read from the standard input's first line; never give it as an argument.
    """
    from custody.server.app import Settings
    from custody.server.domain.roles import ADMINISTRATOR

    with refusals(), platform_at(state, new=True) as platform:
        person = _person(platform, email, first_name, surname, two_factor=two_factor)
        placed = platform.setup.bootstrap(
            organisation=organisation, workspace=workspace, chain=Network(chain), person=person
        )
        _warn_without_backend(Settings(state=state), Network(chain))
    _tell(placed, ADMINISTRATOR.name, email, as_json=as_json)


def _warn_without_backend(settings: "Settings", chain: Network) -> None:
    """A workspace may be made before its node is configured; without the warning, an operator could wait for
    deposits in vain.
    """
    from custody.server.chain.configuration import PREFIX

    if chain not in {source.network for source in settings.chains}:
        setting = f"{PREFIX}{chain.name}"
        typer.echo(
            f"Warning: no backend for {chain} is configured: nothing is seen there, and nothing is sent.\n"
            f"Set {setting} before custody serve; docs/operating/chain.md has the settings.",
            err=True,
        )


@app.command("add-member")
def add_member_command(
    state: State,
    workspace_id: Annotated[int, typer.Option(help="The workspace's id.")],
    email: Email,
    role: Annotated[str, typer.Option(help="The name of a role of that workspace.")] = "Signer",
    first_name: FirstName = None,
    surname: Surname = None,
    two_factor: TwoFactor = True,
    as_json: AsJson = False,
) -> None:
    """Puts a person into a workspace; an address without an account gets one, with a password as in
    bootstrap.
    """
    with refusals(), platform_at(state) as platform:
        person = _person(platform, email, first_name, surname, two_factor=two_factor)
        placed = platform.setup.add_member(workspace_id=workspace_id, role=role, person=person)
    _tell(placed, role, email, as_json=as_json)


@app.command("make-operator")
def make_operator_command(
    state: State,
    email: Annotated[str, typer.Argument(help="The e-mail address of an account.")],
    take_away: Annotated[
        bool, typer.Option("--take-away", help="Make it an ordinary account again.")
    ] = False,
) -> None:
    """Lets a person review requests for organisations. An operator has no part in anybody's workspace
    by it.
    """
    with refusals(), platform_at(state) as platform:
        user_id = platform.setup.make_operator(email, is_operator=not take_away)
    typer.echo(f"{email} (user {user_id}) is {'no operator any more' if take_away else 'an operator'}.")


@app.command("vault-policy")
def vault_policy_command(
    state: State,
    vault: Annotated[str, typer.Option(help="The vault's id.")],
    per_cycle: Annotated[
        bool,
        typer.Option(
            "--per-cycle/--per-movement",
            help="Whether the vault's limit bounds the sum of a cycle, or each movement by itself.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Says what a vault's limit bounds. How much it is, and when its cycle begins, the workspace says
    itself.
    """
    with refusals(), platform_at(state) as platform, platform.services.store.write() as db:
        limits = platform.services.limits.bound_cycle(db, vault, is_per_cycle=per_cycle)
    if as_json:
        typer.echo(limits.model_dump_json(by_alias=True))
        return
    what = "the sum of a cycle" if limits.per_cycle else "each movement"
    typer.echo(f"The limit of {limits.limit} BTC bounds {what}; {limits.used} BTC are used in this cycle.")


@app.command("revoke-key")
def revoke_key_command(
    state: State,
    key_id: Annotated[str, typer.Option(help="The key's id, as it stands among a vault's signers.")],
    reason: Annotated[Reason, typer.Option(help="Whether another device took its place, or it is lost.")],
    force: Annotated[bool, typer.Option("--force", help="Also where a vault keeps too few signers.")] = False,
    as_json: AsJson = False,
) -> None:
    """Revokes a key for good. What a lost one approved and is still pending is asked of the others again."""
    with refusals(), platform_at(state) as platform:
        request = _revocation(key_id, reason, force=force)
        with platform.services.store.write() as db:
            key = platform.services.revocation.revoke_for_operator(db, request)
    typer.echo(
        key.model_dump_json(by_alias=True)
        if as_json
        else f"Key {key.id} of user {key.user_id} is revoked: {key.revoked_reason.value}."
    )


def _revocation(key_id: str, reason: Reason, *, force: bool) -> "RevokeKeyRequest":
    from pydantic import ValidationError

    from custody.schemas.keys import RevokeKeyRequest
    from custody.server.domain.errors import NotFound

    try:
        return RevokeKeyRequest(key_id=key_id, reason=reason.value, force=force)
    except ValidationError:
        raise NotFound("There is no such key.") from None


@app.command("webhook-secret")
def webhook_secret_command(
    state: State,
    take: Annotated[
        bool, typer.Option("--set", help="Take the key that the provider issued, from the standard input.")
    ] = False,
) -> None:
    """Prints what the purchase provider signs its webhooks with: the secret in use, and nothing else."""
    from custody.server.domain.purchases import webhook_key
    from custody.server.service.secrets import Purpose

    with refusals(), platform_at(state, new=True) as platform:
        if take:
            platform.services.purchases.adopt_key(read_secret("The provider's key: "))
            return
        typer.echo(webhook_key(platform.services.secrets.of(Purpose.PURCHASE_WEBHOOK)[0]))


def _person(
    platform: "Platform", email: str, first_name: str | None, surname: str | None, *, two_factor: bool
) -> "NewPerson":
    from custody.server.service.people.setup import NewPerson

    password = None if platform.setup.has_account(email) else read_password()
    return NewPerson(email, password, first_name, surname, two_factor=two_factor)


def _tell(placed: "Placed", role: str, email: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(vars(placed)))
        return
    typer.echo(
        f"{email} is user {placed.user_id}, {role} (role {placed.role_id}) of workspace "
        f"{placed.workspace_id} "
        f"in organisation {placed.organisation_id}."
    )
