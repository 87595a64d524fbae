"""vaults, pin, unpin, policy, addresses, accounts."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signerd import shapes
from signerd.cli import naming
from signerd.cli.desk import NOT_UTF_8, Desk, answering, path_option, read_file, read_text
from signerd.cli.naming import vault_named
from signerd.cli.progress import accepting_other_address, reporting
from signerd.core.states import RECORD, SOURCES, network_words
from signerd.core.text import WHY_ELSEWHERE, as_compared
from signerd.errors import InvalidRequest
from signerd.shapes.limits import MAX_INDEX

if TYPE_CHECKING:
    from signerd.client import DaemonClient


def vault_text(vault: "shapes.VaultView") -> str:
    """One vault as `signerd vaults` shows it."""
    return "\n".join((_head(vault), f"  {_standing(vault)}", *_figures(vault), *_alarms(vault)))


def preview_text(preview: "shapes.PinPreview") -> str:
    """What the person compares before typing the code."""
    also = "" if preview.source == RECORD else ", and the platform's record says the same"
    lines = [
        _head(preview.vault),
        f"  from               {SOURCES[preview.source]}{also}",
        *_figures(preview.vault),
        *preview.advice,
    ]
    return "\n".join(lines)


def _head(vault: "shapes.VaultView") -> str:
    quorum = f"{vault.threshold} of {vault.signers}" if vault.signers else "not readable"
    return f"{vault.vault_id}  '{vault.name}'  {quorum}    {network_words(vault.network)}"


def _standing(vault: "shapes.VaultView") -> str:
    if not vault.pinned:
        return "not pinned: nothing of it is signed"
    known = ", known to your device" if vault.enrolled else ""
    shown = f", its first address {'' if vault.address_shown else 'NOT '}shown there"
    held = "; nothing of it is signed" if vault.fault else ""
    return f"PINNED{known}{shown}{held}"


def _figures(vault: "shapes.VaultView") -> list[str]:
    lines = []
    if vault.first_address is not None:
        lines.append(f"  first address      {vault.first_on_screen or vault.first_address}")
        if vault.first_on_screen not in {None, vault.first_address}:
            lines.append(f"                     {vault.first_address} elsewhere: {WHY_ELSEWHERE}")
        lines.append(f"  verification code  {vault.verification_code}")
    if vault.account is not None:
        lines.append(f"  your key           account {vault.account}")
    if vault.cosigners:
        lines.append("  cosigners, by fingerprint (a label only: anyone can make a key with the same one)")
        lines += [
            f"    {key.fingerprint}  {key.path}  {key.xpub}{'  (your device)' if key.ours else ''}"
            for key in vault.cosigners
        ]
    return lines


def _alarms(vault: "shapes.VaultView") -> list[str]:
    lines = []
    if vault.renamed is not None:
        lines.append(f"  The platform calls it '{vault.renamed}' now. A name is a label only.")
    if vault.fault is not None:
        lines.append(f"  {vault.fault}")
    if vault.changes:
        lines.append(
            "  Call the other signers. Once you know what happened: `signerd unpin`, then pin it again."
        )
    return lines


# The largest PSBT that ``multisig`` reads, 2 MiB, in base64 with line breaks.
MAX_FILE_BYTES = 3_000_000
vault_argument = click.argument(
    "vault_id",
    metavar="VAULT",
    help="Its id, the beginning of it, or its name, as `signerd vaults` lists it.",
)


@answering
def vaults(desk: Desk) -> None:
    """List the vaults, with what to compare with the other signers before pinning one."""
    listed = desk.daemon.vaults()
    desk.give(
        listed, "\n\n".join(vault_text(vault) for vault in listed) or "The platform has shown no vault yet."
    )


@vault_argument
@click.option("--code", help="The verification code; else it is asked for.")
@path_option(
    "--from",
    "from_file",
    metavar="FILE",
    help="A file that has the vault: of Sparrow, Nunchuk, Caravan, Specter, Coldcard or Bitcoin Core, a BSMS "
    "record, or a descriptor with its checksum.",
)
@path_option(
    "--psbt", "from_psbt", metavar="FILE", help="A PSBT that carries the xpubs of all its cosigners."
)
@click.option(
    "--without-device-address", is_flag=True, help="Pin though your device does not show the first address."
)
@path_option(
    "--enrolment-file",
    metavar="OUT",
    help="For a device without a cable: where to write the vault for it; a new file, or a card's folder.",
)
@click.option(
    "--enrolment-form",
    default="coldcard",
    type=click.Choice(["coldcard", "descriptor", "bsms"]),
    help="The form of that file.",
)
@answering
def pin(
    desk: Desk,
    vault_id: str,
    code: str | None,
    from_file: Path | None,
    from_psbt: Path | None,
    without_device_address: bool,
    enrolment_file: Path | None,
    enrolment_form: "shapes.EnrolmentForm",
) -> None:
    """Pin a vault after you compared it with the other signers; from then on this machine knows it.

    The vault is registered on your device, which shows its first address. With --from or --psbt, your vault
    must be the one in the platform's record. A device without a cable takes the vault from --enrolment-file,
    and you say what address it shows. Pinning approves no proposal.
    """
    from signerd.cli.airgap import compared_on_device

    shown = vault_named(desk.daemon, vault_id)
    vault_id = shown.vault_id
    imported = _given_quorum(desk, from_file, from_psbt, shown.network)
    preview = desk.daemon.preview_pin(vault_id, imported)
    desk.tell(preview_text(preview))
    if code is None:
        read = "" if shown.signers == 1 else " as another signer reads it to you"
        code = desk.answers.line(f"Type the verification code{read}")
    if enrolment_file is not None:
        seen = compared_on_device(desk, vault_id, enrolment_file, enrolment_form)
        pinned = desk.daemon.pin(vault_id, code, imported, airgapped=seen)
    else:
        with reporting(desk, vault_id), accepting_other_address(desk):
            pinned = desk.daemon.pin(vault_id, code, imported, without_device_address=without_device_address)
    desk.give(pinned, f"Pinned.\n{vault_text(pinned)}")


@vault_argument
@click.option("--code", help="The code it was pinned under; else it is asked for.")
@answering
def unpin(desk: Desk, vault_id: str, code: str | None) -> None:
    """Unpin a vault, for instance after an alarm that you have looked into; nothing is signed for it until it
    is pinned again.
    """
    shown = vault_named(desk.daemon, vault_id)
    vault_id = shown.vault_id
    desk.tell(vault_text(shown))
    if code is None:
        code = desk.answers.line("Type the verification code under which it was pinned")
    left = desk.daemon.unpin(vault_id, code)
    desk.give(left, f"Not pinned any more.\n{vault_text(left)}")


def _given_quorum(
    desk: Desk, file: Path | None, psbt: Path | None, network: str
) -> "shapes.ImportedQuorum | None":
    """The vault from the file or PSBT that the person gives. Raises InvalidRequest."""
    from firmware_bridge.airgap.handoff import decode_psbt
    from firmware_bridge.errors import BridgeError
    from multisig import MultisigError, Network, ReceivedPsbt, read_vault_file, vault_of_psbt

    if file is None and psbt is None:
        return None
    if file is not None and psbt is not None:
        raise InvalidRequest("--from and --psbt cannot be given together", hint="Pin from one of the two.")
    try:
        if file is not None:
            text = read_text(file, MAX_FILE_BYTES, f"A PSBT is given with --psbt. {NOT_UTF_8}")
            read = read_vault_file(text, Network(network))
            desk.tell(" ".join((f"Read as {read.form}.", *read.notes)))
            return shapes.ImportedQuorum(source="file", descriptor=read.vault.descriptor)
        assert psbt is not None
        parsed = ReceivedPsbt.parse(decode_psbt(read_file(psbt, MAX_FILE_BYTES))).psbt
        return shapes.ImportedQuorum(
            source="psbt", descriptor=vault_of_psbt(parsed, Network(network)).descriptor
        )
    except (BridgeError, MultisigError) as error:
        raise InvalidRequest(
            f"{file or psbt} has no vault that can be pinned: {error}", hint=error.hint
        ) from error


@vault_argument
@click.option("--caravan", is_flag=True, help="As Caravan's file.")
@answering
def policy(desk: Desk, vault_id: str, caravan: bool) -> None:
    """A pinned vault as a wallet policy (BIP-388), for another program: its template, its keys, and what a
    Ledger returned when the vault was registered on it. Whoever sees it sees the vault's payments.
    """
    given = desk.daemon.vault_policy(naming.vault_id(desk.daemon, vault_id))
    registered = [f"{one.fingerprint}  '{one.name}'  {one.hmac}" for one in given.registrations]
    none = "No registration of a Ledger is kept here."
    text = "\n".join((given.template, *given.keys, "", *(registered or (none,))))
    desk.give(given, given.caravan if caravan else text)


OF_PROFILE = "profile"


@click.argument(
    "whose", metavar="VAULT|profile", help="A pinned vault: its id, the beginning of it, or its name."
)
@click.option("--start", default=0, type=click.IntRange(min=0), help="The first one's number.")
@click.option("--count", default=10, type=click.IntRange(min=1, max=50))
@click.option("--change", is_flag=True, help="Those for change.")
@click.option(
    "--show",
    type=click.IntRange(min=0, max=MAX_INDEX),
    metavar="N",
    help="Have your device show this one instead.",
)
@answering
def addresses(desk: Desk, whose: str, start: int, count: int, change: bool, show: int | None) -> None:
    """Addresses of a pinned vault or of your profile, derived on this machine from what was pinned.

    With --show your device shows the address as well, and the two are compared.
    """
    chain, daemon = int(change), desk.daemon
    listing: Callable[..., shapes.AddressPage] = daemon.profile_addresses
    showing: Callable[..., shapes.AddressShown] = daemon.show_profile_address
    if whose != OF_PROFILE:
        whose = naming.vault_id(daemon, whose)
        listing, showing = partial(daemon.vault_addresses, whose), partial(daemon.show_vault_address, whose)
    if show is None:
        page = listing(chain=chain, start=start, count=count)
        desk.give(page, _page_text(page))
        return
    with reporting(desk, _subject(daemon, whose)), accepting_other_address(desk):
        shown = showing(index=show, chain=chain)
    desk.give(shown, f"Your device shows the same address: {as_compared(shown.on_screen, shown.address)}.")


def _subject(daemon: "DaemonClient", whose: str) -> str:
    """The feed's subject: the vault, or the device that holds the registered key."""
    if whose != OF_PROFILE:
        return whose
    registered = daemon.status().fingerprint
    return next((device.id for device in daemon.devices() if device.fingerprint == registered), whose)


def _page_text(page: "shapes.AddressPage") -> str:
    head = f"{page.name}    {network_words(page.network)}"
    lines = []
    for one in page.addresses:
        lines.append(f"  {'change' if one.chain else 'receive'} {one.index:>7}  {one.on_screen}")
        lines += [f"{'':19}{one.address}"] if one.on_screen != one.address else []
    if any(one.on_screen != one.address for one in page.addresses):
        lines.append(f"  First stands what your device shows: {WHY_ELSEWHERE}.")
    return "\n".join([head, *([f"  {page.fault}"] if page.fault else []), *lines])


@click.option("--device", metavar="ID", help="Read them from this device; else the registered ones.")
@click.option(
    "--number", default=0, type=click.IntRange(min=0, max=100), help="With --device: which account."
)
@answering
def accounts(desk: Desk, device: str | None, number: int) -> None:
    """The public keys of your standard accounts: for vaults (BIP-48) and for your profile (BIP-84)."""
    if device is None:
        keys = desk.daemon.accounts()
    else:
        chosen = naming.device_named(desk.daemon.devices(), device)
        keys = desk.daemon.device_accounts(chosen.id, number)
    desk.give(keys, _keys_text(keys))


def _keys_text(keys: "shapes.AccountKeys") -> str:
    if keys.fingerprint is None:
        return "No device of yours is registered. Connect it and run `signerd register`."
    lines = [f"{keys.fingerprint}    {network_words(keys.network)}"]
    lines += [f"  {key.path:<16}  {key.purpose:<8}  account {key.account}  {key.xpub}" for key in keys.keys]
    return "\n".join(lines)
