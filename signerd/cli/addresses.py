"""addresses, accounts."""

from typing import TYPE_CHECKING, Annotated

import typer

from signerd.cli.desk import Json, desk_of
from signerd.cli.output import answer, aside, say
from signerd.core.states import network_words

if TYPE_CHECKING:
    from signerd.client import DaemonClient
    from signerd.shapes import AccountKeys, AddressPage, AddressShown

PROFILE = "profile"

Whose = Annotated[
    str, typer.Argument(metavar="VAULT|profile", help="A pinned vault, as `signerd vaults` lists it.")
]


def addresses(
    context: typer.Context,
    whose: Whose,
    start: Annotated[int, typer.Option(min=0, help="The first one's number.")] = 0,
    count: Annotated[int, typer.Option(min=1, max=50)] = 10,
    change: Annotated[bool, typer.Option("--change", help="Those for change.")] = False,
    show: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Have your device show this one instead.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Addresses of a pinned vault or of your profile, derived on this machine from what was pinned.

    With --show your device shows the address as well, and the two are compared.
    """
    from signerd.cli.follow import told
    from signerd.cli.otherwise import may_say_another

    desk, chain, tell = desk_of(context), int(change), aside if as_json else say
    with desk.daemon() as daemon:
        if show is None:
            page = _page(daemon, whose, chain, start, count)
            answer(page) if as_json else say(_page_text(page))
            return
        with told(daemon, _subject(daemon, whose), tell), may_say_another(desk.daemon, tell):
            shown = _shown(daemon, whose, chain, show)
    answer(shown) if as_json else say(_shown_text(shown))


def _page(daemon: "DaemonClient", whose: str, chain: int, start: int, count: int) -> "AddressPage":
    if whose == PROFILE:
        return daemon.profile_addresses(chain=chain, start=start, count=count)
    return daemon.vault_addresses(whose, chain=chain, start=start, count=count)


def _shown(daemon: "DaemonClient", whose: str, chain: int, index: int) -> "AddressShown":
    if whose == PROFILE:
        return daemon.show_profile_address(index=index, chain=chain)
    return daemon.show_vault_address(whose, index=index, chain=chain)


def _subject(daemon: "DaemonClient", whose: str) -> str:
    """Under what the feed tells of it: the vault, or the device that holds the registered key."""
    if whose != PROFILE:
        return whose
    registered = daemon.status().fingerprint
    return next((device.id for device in daemon.devices() if device.fingerprint == registered), whose)


def _page_text(page: "AddressPage") -> str:
    head = f"{page.name}    {network_words(page.network)}"
    lines = [
        f"  {'change' if one.chain else 'receive'} {one.index:>7}  {one.address}" for one in page.addresses
    ]
    return "\n".join([head, *([f"  {page.fault}"] if page.fault else []), *lines])


def _shown_text(shown: "AddressShown") -> str:
    form = "" if shown.on_screen == shown.address else f" (on its screen: {shown.on_screen})"
    return f"Your device shows the same address: {shown.address}{form}."


def accounts(
    context: typer.Context,
    device: Annotated[
        str | None, typer.Option(metavar="ID", help="Read them from this device; else the registered ones.")
    ] = None,
    number: Annotated[int, typer.Option(min=0, max=100, help="With --device: which account.")] = 0,
    as_json: Json = False,
) -> None:
    """The public keys of your standard accounts: for vaults (BIP-48) and for your profile (BIP-84)."""
    with desk_of(context).daemon() as daemon:
        keys = daemon.accounts() if device is None else daemon.device_accounts(device, number)
    if as_json:
        answer(keys)
    else:
        say(_keys_text(keys))


def _keys_text(keys: "AccountKeys") -> str:
    if keys.fingerprint is None:
        return "No device of yours is registered. Connect it and run `signerd register`."
    lines = [f"{keys.fingerprint}    {network_words(keys.network)}"]
    lines += [f"  {key.path:<16}  {key.purpose:<8}  account {key.account}  {key.xpub}" for key in keys.keys]
    return "\n".join(lines)


COMMANDS = (addresses, accounts)
