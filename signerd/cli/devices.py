"""devices, register; device virtual, demo: virtual signing devices, for trying things out and for tests."""

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from custody.common.terminal import Exit, answer, say, table, tell
from signerd import shapes
from signerd.cli.desk import Desk, answering, asking, json_option, path_option
from signerd.cli.naming import device_named
from signerd.cli.progress import follow_to_its_end, reporting
from signerd.core.states import network_words
from signerd.errors import NoSuchDevice

REGISTRATION = "registration"
OTHER_KEYS = (
    "  THIS IS NOT the key that is registered here ({registered}): another device, or another passphrase. "
    "Nothing is signed with it."
)
REPLACING = (
    "\n  It replaces {former} for good. A vault keeps the keys it was made with: nothing is signed here any "
    "more of\n  the vaults with that key: {vaults}. Have their coins moved on."
)
# A severity that this version does not know is shown as a known flaw.
_STOP, _FLAW = "STOP USING IT", "KNOWN FLAW"
_WORDS = {"stop-using": _STOP}


device_argument = click.argument(
    "device",
    required=False,
    metavar="[ID]",
    help="Its id, the beginning of it, its name or its fingerprint; where there are several.",
)


@click.group(invoke_without_command=True)
@click.pass_context
@json_option
def devices(context: click.Context, as_json: bool) -> None:
    """List the devices that are connected, and what each needs; or do something with one."""
    if context.invoked_subcommand is not None:
        return
    listed = context.obj.daemon.devices()
    if as_json:
        answer(listed)
    elif not listed:
        say("No device is connected.")
    else:
        table(("ID", "DEVICE", "FIRMWARE", "FINGERPRINT", "STATE", ""), [_row(device) for device in listed])


@devices.command()
@device_argument
@click.option("--on-device", is_flag=True, help="Leave what it asks to the device, where that can be.")
@answering
def unlock(desk: Desk, device: str | None, on_device: bool) -> None:
    """Unlock a device with its PIN, passphrase or password, which are never on the command line."""
    chosen = _chosen(desk, device, "locked", "needs-passphrase")
    registered = desk.daemon.status().fingerprint
    unlocked = follow_to_its_end(desk, chosen, on_device=on_device)
    is_other = registered not in {None, unlocked.fingerprint}
    desk.give(
        unlocked,
        f"Unlocked. Its fingerprint is {unlocked.fingerprint}.",
        *([OTHER_KEYS.format(registered=registered)] if is_other else []),
    )


@devices.command()
@device_argument
@answering
def identify(desk: Desk, device: str | None) -> None:
    """Have a device show something harmless, so that you see which one it is."""
    chosen = _chosen(desk, device, "ready")
    with reporting(desk, chosen.id):
        desk.daemon.identify_device(chosen.id)
    desk.give({"device_id": chosen.id, "shown": True})


@devices.command()
@device_argument
@answering
def cancel(desk: Desk, device: str | None) -> None:
    """Cancel the operation on a device."""
    chosen = _chosen(desk, device)
    desk.daemon.cancel_device(chosen.id)
    desk.give({"device_id": chosen.id, "cancelled": True})


@devices.command("another-address")
@device_argument
@answering
def another_address(desk: Desk, device: str | None) -> None:
    """Report that a device shows another address than this machine: its question ends at once, and this is
    recorded.
    """
    chosen = _chosen(desk, device, "busy")
    desk.daemon.another_address(chosen.id)
    desk.give({"device_id": chosen.id, "another_address": True})


def _chosen(desk: Desk, device_id: str | None, *states: str) -> "shapes.DeviceView":
    """The named one; else the only one, or the only one in such a state. Raises NoSuchDevice."""
    connected = desk.daemon.devices()
    if device_id is not None:
        return device_named(connected, device_id)
    fitting = [device for device in connected if not states or device.state in states] or list(connected)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise NoSuchDevice("several devices are connected", hint="Name one, as `signerd devices` lists it.")
    raise NoSuchDevice("no device is connected")


def _row(device: "shapes.DeviceView") -> tuple[str, ...]:
    name = f"{device.name} ({device.model})" if device.label else device.name
    notes = (("emulator" if device.emulator else None), device.detail, device.advice, _flaws(device))
    return (
        device.id,
        name,
        device.firmware or "not known",
        device.fingerprint or "not known",
        device.state,
        " ".join(note for note in notes if note),
    )


def _flaws(device: "shapes.DeviceView") -> str | None:
    """The flaws by name, the worst first; `register` shows them in full."""
    names = ", ".join(flaw.id for flaw in device.advisories)
    return f"{_WORDS.get(device.advisories[0].severity, _FLAW)}: {names}." if names else None


@click.option("--device", metavar="ID", help="Where several are ready.")
@click.option("--replace/--no-replace", default=False, help="In place of keys that are registered already.")
@path_option(
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="Keys that a device without a cable exported; once for each file.",
)
@path_option(
    "--challenge-file",
    metavar="OUT",
    help="With --file: where to write the text that the device signs; a new file, or a card's folder.",
)
@asking
def register(
    desk: Desk, device: str | None, replace: bool, files: tuple[Path, ...], challenge_file: Path | None
) -> None:
    """Register the keys of your device with the platform, once, after you compared the fingerprint.

    With --file: the keys that a device without a cable exported. It signs a text to prove them.
    """
    from signerd.cli.airgap import exports_of, register_files

    exports = exports_of(files)
    daemon = desk.daemon
    if not exports:
        desk.tell("Reading the keys of your device…")
    if device is not None:
        device = device_named(daemon.devices(), device).id
    preview = daemon.preview_airgapped(exports) if exports else daemon.preview_registration(device)
    desk.tell(_text(preview))
    former = daemon.status().fingerprint if replace else None
    if former not in {None, preview.fingerprint}:
        named = [vault.name for vault in daemon.vaults() if vault.account is not None]
        desk.tell(REPLACING.format(former=former, vaults=", ".join(named) or "none"))
    desk.confirm("Is this your device's fingerprint, and register these keys?", "Nothing was registered.")
    if exports:
        registered = register_files(desk, exports, preview.digest, challenge_file, replace=replace)
    else:
        with reporting(desk, REGISTRATION):
            registered = daemon.register(preview.device_id, preview.digest, replace=replace)
    desk.give(
        registered, f"Registered as {registered.key_id}, with the fingerprint {registered.fingerprint}."
    )


def _text(preview: "shapes.RegistrationPreview") -> str:
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


def _warnings(preview: "shapes.RegistrationPreview") -> list[str]:
    """Shown last, right above the question (S20, S22)."""
    lines: list[str] = []
    for flaw in preview.advisories:
        lines += [
            "",
            f"  {_WORDS.get(flaw.severity, _FLAW)}  {flaw.id}  ({flaw.date})",
            f"    {flaw.text}",
            f"    {flaw.advice}",
        ]
        lines += [f"    {source}" for source in flaw.sources]
    return [*lines, *([""] if preview.notes else []), *(f"  {note}" for note in preview.notes)]


FAMILIES = ("trezor", "coldcard", "ledger")
# Never mainnet: a virtual device has its seed on this machine.
TEST_NETWORKS = ("testnet4", "signet", "regtest")


@click.group()
def device() -> None:
    """Signing devices."""


@device.command()
@click.argument("family", type=click.Choice(FAMILIES), help="Whose wire protocol it speaks.")
@click.option(
    "--listen", metavar="ADDRESS", help="host:port, or a socket's path (Coldcard); default: a free one."
)
@path_option("--seed-file", help="BIP-39 words; made if missing. Default: a new seed each time.")
@click.option("--auto", type=click.Choice(("approve", "refuse")), help="Decide without a person.")
@click.option("--network", default="regtest", type=click.Choice(TEST_NETWORKS))
@path_option("--wallets-file", help="Coldcard: where enrolled vaults are kept.")
@click.option("--json", "as_json", is_flag=True, help="Speak to a program, a JSON object a line.")
def virtual(
    family: str,
    listen: str | None,
    seed_file: Path | None,
    auto: str | None,
    network: str,
    wallets_file: Path | None,
    as_json: bool,
) -> None:
    """Run a virtual device: its screen on standard output, its buttons on standard input.

    `python -m device_simulators` has more options: a PIN, a passphrase, another app.
    """
    from device_simulators.cli import Options, run
    from device_simulators.fleet import DeviceSettings
    from firmware_bridge import model
    from multisig import Network

    settings = DeviceSettings(network=Network(network), listen=listen, wallets_file=wallets_file)
    options = Options(settings, seed_file=seed_file, auto=auto, json=as_json)
    raise click.exceptions.Exit(run(model.Family(family), options, sys.stdin, sys.stdout))


@click.option("--auto", is_flag=True, help="Press every button without a person.")
@click.option("--tokens", is_flag=True, help="Then make a token, send some of it, stop it and destroy some.")
def demo(auto: bool, tokens: bool) -> None:
    """Run the main job end to end on this machine: the platform, three signers, three virtual devices."""
    if find_spec("sqlalchemy") is None:
        # Checked before anything is started. The Debian package has no platform.
        sentence = "the demo starts a platform, and its libraries are not installed here"
        hint = "Run: pipx install 'signerd[desktop,server]' && ~/.local/bin/signerd demo"
        raise click.exceptions.Exit(
            tell("signerd", "not-installed", sentence, hint, Exit.FAILED, as_json=False)
        )
    # Loading it takes a second or two.
    click.echo("The demo: one payment from a vault of three signers, on this machine alone.")
    from signerd.demo import story

    raise click.exceptions.Exit(story.main(auto=auto, tokens=tokens))
