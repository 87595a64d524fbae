"""vaults, pin."""

from typing import TYPE_CHECKING, Annotated

import typer

from signerd.cli.desk import Json, desk_of
from signerd.cli.output import answer, aside, say
from signerd.cli.words import network_words
from signerd.errors import UnknownVault, VaultDiffers

if TYPE_CHECKING:
    from signerd.loopback.shapes import VaultView


def vaults(context: typer.Context, as_json: Json = False) -> None:
    """List the vaults, with what to compare with the other signers before pinning one."""
    with desk_of(context).daemon() as daemon:
        found = daemon.vaults()
    if as_json:
        answer(found)
    else:
        say("\n\n".join(_text(vault) for vault in found) or "The platform has shown no vault yet.")


def _text(vault: "VaultView") -> str:
    quorum = f"{vault.threshold} of {vault.signers}" if vault.signers else "not readable"
    known = ", known to your device" if vault.enrolled else ""
    lines = [
        f"{vault.vault_id}  '{vault.name}'  {quorum}    {network_words(vault.network)}",
        f"  {'PINNED' if vault.pinned else 'not pinned: nothing of it is signed'}{known}",
    ]
    if vault.first_address is not None:
        lines.append(f"  first address      {vault.first_address}")
        lines.append(f"  verification code  {vault.verification_code}")
    if vault.account is not None:
        lines.append(f"  your key           account {vault.account}")
    if vault.fault is not None:
        lines.append(f"  {vault.fault}")
    return "\n".join(lines)


def pin(
    context: typer.Context,
    vault_id: Annotated[str, typer.Argument(metavar="VAULT", help="As `signerd vaults` lists it.")],
    code: Annotated[str | None, typer.Option(help="The verification code; else it is asked for.")] = None,
    as_json: Json = False,
) -> None:
    """Pin a vault after you compared it with the other signers; from then on this machine knows it."""
    from signerd.cli.follow import told

    desk, tell = desk_of(context), aside if as_json else say
    with desk.daemon() as daemon:
        vault = _chosen(daemon.vaults(), vault_id)
        if code is None:
            # The code itself is not shown: what is typed must come from the others.
            tell(f"{vault.name}: {vault.threshold} of {vault.signers}, {network_words(vault.network)}")
            tell(f"First address: {vault.first_address}")
            code = desk.answers.line("Ask another signer to read you the verification code, and type it")
        with told(daemon, vault_id, tell):
            pinned = daemon.pin(vault_id, code)
    if as_json:
        answer(pinned)
    else:
        say(f"Pinned.\n{_text(pinned)}")


def _chosen(found: "tuple[VaultView, ...]", vault_id: str) -> "VaultView":
    for vault in found:
        if vault.vault_id == vault_id:
            if vault.signers is None:
                raise VaultDiffers(f"the vault cannot be used: {vault.fault}")
            return vault
    raise UnknownVault(f"the platform has shown no vault '{vault_id}'")


COMMANDS = (vaults, pin)
