"""``custody advisory``: submit, sign and check a publisher's signed lists, and list the vaults they
expose.
"""

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody.cli.common import Stop, fail, json_option
from custody.cli.desk import Desk, pass_desk
from custody.cli.meant import chosen, place_of, workspace_option
from custody.naming import Candidate
from custody.terminal import Exit, answer, aside, say, table
from custody.text import count

if TYPE_CHECKING:
    from custody.advisories import AdvisoryList
    from custody.client import Client
    from custody.schemas.advisories import AdvisoryPublisher, ShownAdvisory, VaultExposure

SECRET_BYTES = 32
a_file = click.Path(path_type=Path)


@click.group("advisory")
def advisory() -> None:
    """Signed advisories about devices: take one, see which vaults it exposes, sign your own."""


@advisory.command("list")
@pass_desk
@json_option
def list_command(desk: Desk, as_json: bool) -> None:
    """The advisories in force, by publisher."""
    with desk.client() as client:
        found = client.advisories()
    if as_json:
        answer(found)
        return
    if not found:
        say("There are none.")
    for publisher in found:
        _show(publisher)


@advisory.command("take")
@pass_desk
@click.argument("file", type=a_file)
@workspace_option
@json_option
def take_command(desk: Desk, file: Path, workspace: str | None, as_json: bool) -> None:
    """Submit a publisher's list to the platform, which trusts nothing but its signature."""
    from custody.schemas.advisories import TakeAdvisoriesRequest

    text = _read(file).decode(errors="replace")
    with desk.client() as client:
        place = place_of(client, workspace)
        taken = client.take_advisories(TakeAdvisoriesRequest(workspace_id=place.workspace_id, list=text))
    if as_json:
        answer(taken)
        return
    _show(taken)
    say("Which vaults one exposes: custody advisory exposures NAME")


@advisory.command("exposures")
@pass_desk
@click.argument("given", metavar="ADVISORY", help="Its name, or the beginning of it.")
@workspace_option
@json_option
def exposures_command(desk: Desk, given: str, workspace: str | None, as_json: bool) -> None:
    """The organisation's vaults with exposed keys, the most exposed first."""
    with desk.client() as client:
        place = place_of(client, workspace)
        found = client.exposures(place.workspace_id, meant_advisory(client, given).advisory_id)
    if as_json:
        answer(found)
        return
    if not found:
        say("It exposes no vault that you see.")
        return
    table(("VAULT", "EXPOSED", "OF", "STILL NEEDED", "SATOSHIS", "NAME"), [_row(each) for each in found])


@advisory.command("report")
@pass_desk
@click.argument("given", metavar="ADVISORY", help="Its name, or the beginning of it.")
@click.option("--file", type=a_file, help="Write it to this file, too, as JSON.")
@workspace_option
@json_option
def report_command(desk: Desk, given: str, file: Path | None, workspace: str | None, as_json: bool) -> None:
    """How long each step took, from the advisory to the last sweep: of a drill or of the real thing."""
    from custody.advisory_report import of_advisory, report, words

    with desk.client() as client:
        place = place_of(client, workspace)
        meant = meant_advisory(client, given)
        exposed = client.exposures(place.workspace_id, meant.advisory_id)
        found = of_advisory(meant, exposed, client.evacuations(place.workspace_id))
    if not found:
        fail("no evacuation was started since this advisory", "Begin with custody evacuate plan.")
    reports = [report(meant, each, exposed) for each in found]
    if file is not None:
        file.write_text(
            json.dumps([each.model_dump(mode="json") for each in reports], indent=2) + "\n", encoding="utf-8"
        )
    if as_json:
        answer(reports)
        return
    for each in reports:
        kind = "Drill" if each.is_drill else "Incident"
        vaults = count(each.exposed_vaults, "exposed vault", "exposed vaults")
        say(f"{kind} {each.advisory}, evacuation {each.evacuation_id[:8]}: {vaults}")
        for step in each.steps:
            say(f"  {words(step.seconds):>18}  {step.what}")
        for name, reason in each.left.items():
            say(f"  not swept: '{name}': {reason}")


@advisory.command("new-key")
@click.argument("secret_file", type=a_file)
@json_option
def new_key_command(secret_file: Path, as_json: bool) -> None:
    """Make a publisher's key: the secret goes into the file, the public key is printed."""
    from custody.advisories import public_key_of
    from custody.private_files import write_private

    if secret_file.exists():
        fail(f"{secret_file} already exists", "Name a new file.", Exit.USAGE)
    secret = secrets.token_bytes(SECRET_BYTES)
    write_private(secret_file, secret.hex().encode() + b"\n")
    if as_json:
        answer({"publisher": public_key_of(secret)})
    else:
        aside(
            "This is the public key. Readers trust it: the platform in CUSTODY_ADVISORY_KEYS, each signer in "
            "advisory_keys of signerd's config.toml."
        )
        say(public_key_of(secret))


@advisory.command("sign")
@click.argument("draft", type=a_file)
@click.argument("signed", type=a_file)
@click.option("--key", "key_file", required=True, type=a_file, help="The file of the secret to sign with.")
@click.option("--after", type=a_file, help="The list before this one, as it was published.")
@click.option("--former-key", type=a_file, help="The secret that signed it, where the key is a new one.")
@json_option
def sign_command(
    draft: Path, signed: Path, key_file: Path, after: Path | None, former_key: Path | None, as_json: bool
) -> None:
    """Sign a draft: a JSON file with issued, expires and advisories."""
    from custody.advisories import AdvisoriesRefused, publish, read_list

    try:
        made = publish(
            json.loads(_read(draft)),
            _secret(key_file),
            secrets.token_bytes(SECRET_BYTES),
            after=None if after is None else read_list(_read(after)),
            former_secret=None if former_key is None else _secret(former_key),
        )
    except AdvisoriesRefused as error:
        raise Stop(str(error).rstrip("."), "Nothing was signed.") from None
    except (ValueError, RecursionError):
        fail(f"{draft} is not JSON", "The page 'A flaw in devices' of the documentation shows an example.")
    signed.write_bytes(made.line + b"\n")
    _say_list(made, as_json=as_json)


@advisory.command("check")
@click.argument("file", type=a_file)
@click.option("--publisher", required=True, help="The publisher's key that you trust, in hex.")
@json_option
def check_command(file: Path, publisher: str, as_json: bool) -> None:
    """Check that a list is signed by its publisher and in force, without a platform."""
    from datetime import UTC, datetime

    from custody.advisories import AdvisoriesRefused, believe

    try:
        told, _ = believe(_read(file), {publisher}, (), datetime.now(UTC))
    except AdvisoriesRefused as error:
        raise Stop(str(error).rstrip("."), "Believe nothing in it.") from None
    _say_list(told, as_json=as_json)


def _say_list(told: "AdvisoryList", *, as_json: bool) -> None:
    if as_json:
        answer(told.model_dump(by_alias=True))
        return
    say(f"Serial {told.serial}, epoch {told.signer.epoch}, until {told.expires}, signed by {told.signer.key}")
    for each in told.advisories:
        say(f"  {each.id}: {'drill, ' if each.drill else ''}{each.severity}. {each.text}")


def _read(path: Path) -> bytes:
    """Reads no more than a list may have: a larger file is refused by its size."""
    from custody.advisories import MAX_BYTES

    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 2)
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}", "Name an existing file.", Exit.USAGE)


def _secret(path: Path) -> bytes:
    try:
        secret = bytes.fromhex(_read(path).decode().strip())
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        fail(f"{path} holds no secret key", "Make one with custody advisory new-key.", Exit.USAGE)
    return secret


def meant_advisory(client: "Client", given: str) -> "ShownAdvisory":
    """Raises Stop."""
    known = {str(each.advisory_id): each for one in client.advisories() for each in one.advisories}
    candidates = [Candidate(number, (each.name,), each.text) for number, each in known.items()]
    return known[chosen(given, candidates, "advisory", "custody advisory list lists them.")]


def _show(publisher: "AdvisoryPublisher") -> None:
    over = " It is over: ask for a newer one." if publisher.is_over else ""
    say(f"Publisher {publisher.publisher}: serial {publisher.serial}, until {publisher.expires}.{over}")
    for each in publisher.advisories:
        say(f"  {each.name}: {'drill, ' if each.is_drill else ''}{each.severity}. {each.text}")
        say(f"    {each.advice}")
        for source in each.sources:
            aside(f"    {source}")


def _row(each: "VaultExposure") -> tuple[str, ...]:
    needed = "none" if each.keys_to_spare == 0 else f"{each.keys_to_spare} more"
    return (
        each.vault_id[:8],
        str(each.exposed_keys),
        f"{each.m} of {each.n}",
        needed,
        f"{each.balance_sats:,}",
        each.name if each.replaced_at is None else _evacuated(each),
    )


def _evacuated(each: "VaultExposure") -> str:
    how = "being evacuated since" if each.balance_sats else "evacuated on"
    return f"{each.name} ({how} {each.replaced_at:%Y-%m-%d}, replaced by {each.replacement_name})"
