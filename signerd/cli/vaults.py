"""A vault in words: what is compared before it is pinned, and what is known of it afterwards."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signerd.cli.desk import Json, desk_of
from signerd.cli.output import answer, aside, say
from signerd.core.states import network_words
from signerd.errors import InvalidRequest, UnknownVault

if TYPE_CHECKING:
    from signerd.shapes import BroughtQuorum, CosignerView, PinPreview, VaultView

SOURCES = {"record": "the platform's record", "file": "your file", "psbt": "the PSBT's account keys"}


def vault_text(vault: "VaultView") -> str:
    """Everything that `signerd vaults` says about one vault."""
    return "\n".join((_head(vault), f"  {_standing(vault)}", *_figures(vault), *_alarms(vault)))


def preview_text(preview: "PinPreview") -> str:
    """What the person compares before typing the code."""
    source = SOURCES.get(preview.source, preview.source)
    also = "" if preview.source == "record" else ", and the platform's record says the same"
    lines = [
        _head(preview.vault),
        f"  from               {source}{also}",
        *_figures(preview.vault),
        *preview.advice,
    ]
    return "\n".join(lines)


def _head(vault: "VaultView") -> str:
    quorum = f"{vault.threshold} of {vault.signers}" if vault.signers else "not readable"
    return f"{vault.vault_id}  '{vault.name}'  {quorum}    {network_words(vault.network)}"


def _standing(vault: "VaultView") -> str:
    if not vault.pinned:
        return "not pinned: nothing of it is signed"
    known = ", known to your device" if vault.enrolled else ""
    shown = ", its first address seen there" if vault.address_shown else ", its first address NOT seen there"
    held = "; nothing of it is signed" if vault.changes else ""
    return f"PINNED{known}{shown}{held}"


def _figures(vault: "VaultView") -> list[str]:
    lines = []
    if vault.first_address is not None:
        lines.append(f"  first address      {vault.first_address}")
        lines.append(f"  verification code  {vault.verification_code}")
    if vault.account is not None:
        lines.append(f"  your key           account {vault.account}")
    if vault.cosigners:
        lines.append("  cosigners, by fingerprint (a label only: anybody can make a key that bears it)")
        lines += [f"    {_cosigner(key)}" for key in vault.cosigners]
    return lines


def _cosigner(key: "CosignerView") -> str:
    return f"{key.fingerprint}  {key.path}  {key.xpub}{'  (your device)' if key.ours else ''}"


def _alarms(vault: "VaultView") -> list[str]:
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
PSBT_MAGIC = b"psbt\xff"

VaultId = Annotated[str, typer.Argument(metavar="VAULT", help="As `signerd vaults` lists it.")]


def vaults(context: typer.Context, as_json: Json = False) -> None:
    """List the vaults, with what to compare with the other signers before pinning one."""
    with desk_of(context).daemon() as daemon:
        found = daemon.vaults()
    if as_json:
        answer(found)
    else:
        say("\n\n".join(vault_text(vault) for vault in found) or "The platform has shown no vault yet.")


def pin(
    context: typer.Context,
    vault_id: VaultId,
    code: Annotated[str | None, typer.Option(help="The verification code; else it is asked for.")] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A file that has the vault: a BSMS 1.0 record (BIP-129), or a descriptor with its checksum.",
        ),
    ] = None,
    from_psbt: Annotated[
        Path | None,
        typer.Option("--psbt", metavar="FILE", help="A PSBT that carries the xpubs of all its cosigners."),
    ] = None,
    without_device_address: Annotated[
        bool,
        typer.Option(
            "--without-device-address", help="Pin though your device does not show the first address."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Pin a vault after you compared it with the other signers; from then on this machine knows it.

    Your device is made to know the vault and shows its first address. With --from or --psbt the vault that you bring must
    be the one in the platform's record. Pinning approves no proposal.
    """
    from signerd.cli.follow import told
    from signerd.cli.otherwise import may_say_another

    desk, tell = desk_of(context), aside if as_json else say
    with desk.daemon() as daemon:
        shown = _one_of(daemon.vaults(), vault_id)
        brought = _brought(from_file, from_psbt, shown.network)
        preview = daemon.preview_pin(vault_id, brought)
        tell(preview_text(preview))
        if code is None:
            code = desk.answers.line("Type the verification code as another signer reads it to you")
        with told(daemon, vault_id, tell), may_say_another(desk.daemon, tell):
            pinned = daemon.pin(vault_id, code, brought, without_device_address=without_device_address)
    if as_json:
        answer(pinned)
    else:
        say(f"Pinned.\n{vault_text(pinned)}")


def unpin(
    context: typer.Context,
    vault_id: VaultId,
    code: Annotated[
        str | None, typer.Option(help="The code it was pinned under; else it is asked for.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Forget a pinned vault, after an alarm that you have looked into; nothing of it is signed until it is pinned again."""
    desk, tell = desk_of(context), aside if as_json else say
    with desk.daemon() as daemon:
        tell(vault_text(_one_of(daemon.vaults(), vault_id)))
        if code is None:
            code = desk.answers.line("Type the verification code under which it was pinned")
        left = daemon.unpin(vault_id, code)
    if as_json:
        answer(left)
    else:
        say(f"Not pinned any more.\n{vault_text(left)}")


def _one_of(found: "tuple[VaultView, ...]", vault_id: str) -> "VaultView":
    for vault in found:
        if vault.vault_id == vault_id:
            return vault
    raise UnknownVault(f"the platform has shown no vault '{vault_id}'")


def _brought(file: Path | None, psbt: Path | None, network: str) -> "BroughtQuorum | None":
    """The vault that the person has from elsewhere, proven whole where it is read.

    Raises InvalidRequest.
    """
    from multisig import MultisigError, Network, Psbt, vault_of_file, vault_of_psbt
    from signerd.shapes import BroughtQuorum

    if file is None and psbt is None:
        return None
    if file is not None and psbt is not None:
        raise InvalidRequest("--from and --psbt cannot be given together", hint="Pin from one of the two.")
    try:
        if file is not None:
            vault = vault_of_file(_text(_read(file)), Network(network))
            return BroughtQuorum(source="file", descriptor=vault.descriptor)
        assert psbt is not None
        data = _read(psbt)
        parsed = Psbt.parse(data if data.startswith(PSBT_MAGIC) else _text(data))
        return BroughtQuorum(source="psbt", descriptor=vault_of_psbt(parsed, Network(network)).descriptor)
    except MultisigError as error:
        raise InvalidRequest(
            f"{file or psbt} has no vault that can be pinned: {error}", hint=error.hint
        ) from error


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}", hint="Give another file.") from error
    if len(data) > MAX_FILE_BYTES:
        raise InvalidRequest(f"{path} is larger than any vault or PSBT", hint="Give another file.")
    return data


def _text(data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise InvalidRequest("the file is no text", hint="A PSBT is given with --psbt.") from error


COMMANDS = (
    vaults,
    pin,
    unpin,
)
