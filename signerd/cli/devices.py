"""devices, register; device virtual, demo: virtual signing devices, for trying things out and for tests."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signerd.cli.desk import Json, Yes, desk_of
from signerd.cli.terminal import Exit, answer, aside, say, table
from signerd.core.states import network_words
from signerd.errors import NoSuchDevice

if TYPE_CHECKING:
    from signerd.shapes import DeviceView, RegistrationPreview

DeviceId = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="As `signerd devices` lists it; where there are several.")
]

REGISTRATION = "registration"
LOCKED = frozenset({"locked", "needs-passphrase"})
READY = frozenset({"ready"})
SHOWING = frozenset({"busy"})
OTHER_KEYS = (
    "  THIS IS NOT the key that is registered here ({registered}): another device, or another passphrase. "
    "Nothing is signed with it."
)
REPLACING = (
    "\n  This device takes the place of the one that is registered now, for good. A vault keeps the keys it "
    "was made with:\n"
    "  of those that hold the former device's key nothing is signed here any more. Have their coins moved on."
)
# A severity that a newer daemon knows is a known flaw here.
_STOP, _FLAW = "STOP USING IT", "KNOWN FLAW"
_WORDS = {"stop-using": _STOP}


devices_app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@devices_app.callback()
def devices(context: typer.Context, as_json: Json = False) -> None:
    """List the devices that are connected, and what each needs; or do something with one."""
    if context.invoked_subcommand is not None:
        return
    with desk_of(context).daemon() as daemon:
        found = daemon.devices()
    if as_json:
        answer(found)
    elif not found:
        say("No device is connected.")
    else:
        table(("ID", "MODEL", "FIRMWARE", "FINGERPRINT", "STATE", ""), [_row(device) for device in found])


@devices_app.command()
def unlock(
    context: typer.Context,
    device: DeviceId = None,
    on_device: Annotated[
        bool, typer.Option("--on-device", help="Leave what it asks to the device, where that can be.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Give a device its PIN, its passphrase or its password; nothing of it stands in the command line."""
    from signerd.cli.progress import follow_to_its_end

    desk, tell = desk_of(context), aside if as_json else say
    with desk.daemon() as daemon:
        chosen = _chosen(daemon.devices(), device, LOCKED)
        registered = daemon.status().fingerprint
        unlocked = follow_to_its_end(daemon, chosen, desk.answers, tell, on_device=on_device)
    if as_json:
        answer(unlocked)
        return
    say(f"Unlocked. Its fingerprint is {unlocked.fingerprint}.")
    if registered not in {None, unlocked.fingerprint}:
        say(OTHER_KEYS.format(registered=registered))


@devices_app.command()
def identify(context: typer.Context, device: DeviceId = None, as_json: Json = False) -> None:
    """Have a device show something harmless, so that you see which one it is."""
    from signerd.cli.progress import told

    with desk_of(context).daemon() as daemon:
        chosen = _chosen(daemon.devices(), device, READY)
        with told(daemon, chosen.id, aside if as_json else say):
            daemon.identify_device(chosen.id)
    if as_json:
        answer({"device_id": chosen.id, "shown": True})


@devices_app.command()
def cancel(context: typer.Context, device: DeviceId = None, as_json: Json = False) -> None:
    """Give up what runs on a device."""
    with desk_of(context).daemon() as daemon:
        chosen = _chosen(daemon.devices(), device, None)
        daemon.cancel_device(chosen.id)
    if as_json:
        answer({"device_id": chosen.id, "cancelled": True})


@devices_app.command("another-address")
def another_address(context: typer.Context, device: DeviceId = None, as_json: Json = False) -> None:
    """Say that a device shows another address than this machine: its question ends at once, and that is
    written down.
    """
    with desk_of(context).daemon() as daemon:
        chosen = _chosen(daemon.devices(), device, SHOWING)
        daemon.another_address(chosen.id)
    if as_json:
        answer({"device_id": chosen.id, "another_address": True})


def _chosen(
    found: "tuple[DeviceView, ...]", device_id: str | None, wanted: frozenset[str] | None
) -> "DeviceView":
    """The named one; else the only one, or the only one in such a state. Raises NoSuchDevice."""
    if device_id is not None:
        fitting = [device for device in found if device.id == device_id]
    else:
        fitting = [device for device in found if wanted is None or device.state in wanted] or list(found)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise NoSuchDevice("several devices are connected", hint="Name one, as `signerd devices` lists it.")
    raise NoSuchDevice(f"there is no device '{device_id}'" if device_id else "no device is connected")


def _row(device: "DeviceView") -> tuple[str, ...]:
    name = f"{device.model} ({device.label})" if device.label else device.model
    notes = (("emulator" if device.emulator else None), device.detail, device.advice, _flaws(device))
    return (
        device.id,
        name,
        device.firmware or "not known",
        device.fingerprint or "not known",
        device.state,
        " ".join(note for note in notes if note),
    )


def _flaws(device: "DeviceView") -> str | None:
    """By name; `register` tells them whole. The worst comes first."""
    if not device.advisories:
        return None
    names = ", ".join(flaw.id for flaw in device.advisories)
    return f"{_WORDS.get(device.advisories[0].severity, _FLAW)}: {names}."


def register(
    context: typer.Context,
    device: Annotated[str | None, typer.Option(metavar="ID", help="Where several are ready.")] = None,
    replace: Annotated[bool, typer.Option(help="In place of keys that are registered already.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Register the keys of your device with the platform, once, after you compared the fingerprint."""
    from signerd.cli.progress import told

    desk, tell = desk_of(context), aside if as_json else say
    with desk.daemon() as daemon:
        tell("Reading the keys of your device…")
        preview = daemon.preview_registration(device)
        tell(_text(preview))
        if replace:
            tell(REPLACING)
        if not yes and not desk.answers.yes("Is this your device's fingerprint, and register these keys?"):
            tell("Nothing was registered.")
            raise typer.Exit(Exit.DECLINED)
        with told(daemon, REGISTRATION, tell):
            registered = daemon.register(preview.device_id, preview.digest, replace=replace)
    if as_json:
        answer(registered)
    else:
        say(f"Registered as {registered.key_id}, with the fingerprint {registered.fingerprint}.")


def _text(preview: "RegistrationPreview") -> str:
    lines = [
        f"{preview.device}    {network_words(preview.network)}",
        f"  Master fingerprint  {preview.fingerprint}",
        f"  Firmware            {preview.firmware or 'not known'}",
        "  Public keys that would be registered:",
    ]
    for key in preview.keys:
        purpose = f"vault account {key.account}" if key.purpose == "vault" else key.purpose
        lines.append(f"    {key.path:<16}  {purpose:<15}  {key.xpub}")
    return "\n".join([*lines, *_warnings(preview)])


def _warnings(preview: "RegistrationPreview") -> list[str]:
    """Last, so that they stand right above the question (S20, S22)."""
    lines: list[str] = []
    for flaw in preview.advisories:
        lines += [
            "",
            f"  {_WORDS.get(flaw.severity, _FLAW)}  {flaw.id}",
            f"    {flaw.text}",
            f"    {flaw.advice}",
        ]
        lines += [f"    {source}" for source in flaw.sources]
    return [*lines, *([""] if preview.notes else []), *(f"  {note}" for note in preview.notes)]


device_app = typer.Typer(help="Signing devices.", no_args_is_help=True, rich_markup_mode=None)


class Family(StrEnum):
    TREZOR = "trezor"
    COLDCARD = "coldcard"
    LEDGER = "ledger"


class Decision(StrEnum):
    APPROVE = "approve"
    REFUSE = "refuse"


class TestNetwork(StrEnum):
    """Never mainnet: a virtual device keeps its seed on the machine that it is to guard against."""

    TESTNET4 = "testnet4"
    SIGNET = "signet"
    REGTEST = "regtest"


@device_app.callback()
def device() -> None:
    """Signing devices."""


@device_app.command()
def virtual(
    family: Annotated[Family, typer.Argument(help="Whose wire protocol it speaks.")],
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="host:port, or a socket's path (Coldcard); default: a free one."
        ),
    ] = None,
    seed_file: Annotated[
        Path | None, typer.Option(help="BIP-39 words; made if missing. Default: a new seed each time.")
    ] = None,
    auto: Annotated[Decision | None, typer.Option(help="Decide without a person.")] = None,
    network: Annotated[TestNetwork, typer.Option()] = TestNetwork.REGTEST,
    wallets_file: Annotated[
        Path | None, typer.Option(help="Coldcard: where enrolled vaults are kept.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Speak to a program, a JSON object a line.")
    ] = False,
) -> None:
    """Run a virtual device: its screen on standard output, its buttons on standard input.

    `python -m device_simulators` has more options: a PIN, a passphrase, another app.
    """
    from device_simulators.cli import Options, run
    from device_simulators.fleet import Settings
    from firmware_bridge import model
    from multisig import Network

    settings = Settings(network=Network(network.value), listen=listen, wallets_file=wallets_file)
    options = Options(settings, seed_file=seed_file, auto=None if auto is None else auto.value, json=as_json)
    raise typer.Exit(run(model.Family(family.value), options, sys.stdin, sys.stdout))


def demo(
    auto: Annotated[bool, typer.Option("--auto", help="Press every button without a person.")] = False,
) -> None:
    """Run the main job end to end on this machine: the platform, three signers, three virtual devices."""
    from signerd.demo import story

    raise typer.Exit(story.main(auto=auto))
