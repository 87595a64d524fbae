"""``custody``: serve the platform, print its OpenAPI document, set people up, check the audit log."""

import getpass
import json
import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import structlog
import typer

from custody.server.app import Platform, Settings, open_platform
from custody.server.chain.embedded.chain import MAX_BLOCKS_PER_CALL
from custody.server.domain.errors import CustodyError
from custody.server.domain.permissions import ADMINISTRATOR, SIGNER
from custody.server.listen import Address, CannotListen, bind, only_server, serve, write_port_file
from custody.server.service import audit
from custody.server.service.setup import NewPerson, Placed
from multisig import Network

app = typer.Typer(no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)
admin = typer.Typer(no_args_is_help=True, help="Organisations and people, straight in the database.")
audit_commands = typer.Typer(no_args_is_help=True, help="The audit log.")
app.add_typer(admin, name="admin")
app.add_typer(audit_commands, name="audit")

State = Annotated[Path, typer.Option("--state", help="The platform's state folder.", envvar="CUSTODY_STATE")]
Email = Annotated[str, typer.Option(help="The person's e-mail address: the name to sign in with.")]
FirstName = Annotated[str | None, typer.Option(help="Shown to other members.")]
Surname = Annotated[str | None, typer.Option(help="Shown to other members.")]
TwoFactor = Annotated[bool, typer.Option(help="Ask for a mailed code at each sign-in.")]
AsJson = Annotated[bool, typer.Option("--json", help="One line of JSON, for programs.")]


class Chain(StrEnum):
    """The chains that a workspace can be on."""

    MAINNET = Network.MAINNET
    TESTNET4 = Network.TESTNET4
    SIGNET = Network.SIGNET
    REGTEST = Network.REGTEST


@app.command("serve")
def serve_command(
    state: State,
    listen: Annotated[
        str, typer.Option(help="Address and port; port 0 takes a free one.")
    ] = "127.0.0.1:8080",
    port_file: Annotated[
        Path | None, typer.Option(help="Where to write the port once requests are answered.")
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A TLS proxy on this machine stands in front.")
    ] = False,
) -> None:
    """Serves the platform until it is told to stop (SIGINT or SIGTERM)."""
    _log_as_json()

    def announce(address: Address) -> None:
        if port_file is not None:
            write_port_file(port_file, address)
        typer.echo(f"Serving on {address.url}")

    with _refusals(), _platform(state) as platform, only_server(state):
        listener = bind(Address.parse(listen), behind_proxy=behind_proxy)
        serve(
            platform.asgi,
            listener,
            behind_proxy=behind_proxy,
            on_ready=announce,
            on_stop=platform.services.changes.close,
        )


@app.command("openapi")
def openapi_command() -> None:
    """Prints the OpenAPI document."""
    with tempfile.TemporaryDirectory() as folder, _platform(Path(folder)) as platform:
        typer.echo(json.dumps(platform.asgi.openapi(), indent=2))


@app.command("mine")
def mine_command(
    count: Annotated[int, typer.Argument(help="How many blocks.", min=1, max=MAX_BLOCKS_PER_CALL)],
    state: State,
    as_json: AsJson = False,
) -> None:
    """Mines blocks on the embedded chain of the server that runs on this state folder."""
    with _refusals(), _platform(state) as platform:
        answer = platform.operator.mine(count)
    typer.echo(json.dumps(answer) if as_json else f"Block {answer['height']}: {answer['block_hash']}")


@app.command("fund")
def fund_command(
    address: Annotated[str, typer.Argument(help="A regtest address.")],
    amount_btc: Annotated[str, typer.Argument(help="Like 0.5: bitcoin, with at most eight places.")],
    state: State,
    as_json: AsJson = False,
) -> None:
    """Pays from the embedded chain's own coins. The payment waits for the next block: custody mine 1."""
    with _refusals(), _platform(state) as platform:
        answer = platform.operator.fund(address, amount_btc)
    typer.echo(json.dumps(answer) if as_json else answer["txid"])


@admin.command("bootstrap")
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
    with _refusals(), _platform(state) as platform:
        person = _person(platform, email, first_name, surname, two_factor=two_factor)
        placed = platform.setup.bootstrap(
            organisation=organisation, workspace=workspace, chain=Network(chain), person=person
        )
    _tell(placed, ADMINISTRATOR.name, email, as_json=as_json)


@admin.command("add-member")
def add_member_command(
    state: State,
    workspace_id: Annotated[int, typer.Option(help="The workspace's id.")],
    email: Email,
    role: Annotated[str, typer.Option(help="The name of a role of that workspace.")] = SIGNER.name,
    first_name: FirstName = None,
    surname: Surname = None,
    two_factor: TwoFactor = True,
    as_json: AsJson = False,
) -> None:
    """Puts a person into a workspace; an address without an account gets one, with a password as in bootstrap."""
    with _refusals(), _platform(state) as platform:
        person = _person(platform, email, first_name, surname, two_factor=two_factor)
        placed = platform.setup.add_member(workspace_id=workspace_id, role=role, person=person)
    _tell(placed, role, email, as_json=as_json)


@audit_commands.command("verify")
def verify_command(state: State) -> None:
    """Checks every hash chain; names the first bad row of each broken one and exits with 1."""
    with _platform(state) as platform:
        faults = audit.verify(platform.services.store)
    for fault in faults:
        typer.echo(f"{fault.chain_id}, row {fault.position}: {fault.sentence}", err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo("Every audit chain is whole.")


@contextmanager
def _platform(state: Path) -> Iterator[Platform]:
    platform = open_platform(Settings(state=state))
    try:
        yield platform
    finally:
        platform.close()


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except CustodyError as error:
        _fail(error.detail, error.hint)
    except CannotListen as error:
        _fail(str(error), error.hint)
    except OSError as error:
        _fail(
            f"{error.filename or 'A file'} cannot be used: {error.strerror}.",
            "Name a folder that you may write.",
        )


def _fail(sentence: str, hint: str) -> None:
    typer.echo(f"{sentence}\n{hint}", err=True)
    raise typer.Exit(1)


def _person(
    platform: Platform, email: str, first_name: str | None, surname: str | None, *, two_factor: bool
) -> NewPerson:
    password = None if platform.setup.has_account(email) else _read_password()
    return NewPerson(email, password, first_name, surname, two_factor=two_factor)


def _read_password() -> str:
    """Never an argument: those are seen by every program on the machine (P49)."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("The same again: ") != password:
        _fail("The two passwords differ.", "Run the command again.")
    return password


def _tell(placed: Placed, role: str, email: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(vars(placed)))
        return
    typer.echo(
        f"{email} is user {placed.user_id}, {role} (role {placed.role_id}) of workspace {placed.workspace_id} "
        f"in organisation {placed.organisation_id}."
    )


def _log_as_json() -> None:
    """One JSON object per line on the standard error."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def main() -> None:
    app()
