"""devices, and what is done with one by hand; register."""

from typing import TYPE_CHECKING, Annotated

import typer

from signerd.cli.desk import Json, Yes, desk_of
from signerd.cli.output import Exit, answer, aside, say, table
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
    "\n  This device takes the place of the one that is registered now, for good. A vault keeps the keys it was made with:\n"
    "  of those that hold the former device's key nothing is signed here any more. Have their coins moved on."
)
# A severity that a newer daemon knows is a known flaw here.
_STOP, _FLAW = "STOP USING IT", "KNOWN FLAW"
_WORDS = {"stop-using": _STOP}


app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@app.callback()
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


@app.command()
def unlock(
    context: typer.Context,
    device: DeviceId = None,
    on_device: Annotated[
        bool, typer.Option("--on-device", help="Leave what it asks to the device, where that can be.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Give a device its PIN, its passphrase or its password; nothing of it stands in the command line."""
    from signerd.cli.unlocking import follow_to_its_end

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


@app.command()
def identify(context: typer.Context, device: DeviceId = None, as_json: Json = False) -> None:
    """Have a device show something harmless, so that you see which one it is."""
    from signerd.cli.follow import told

    with desk_of(context).daemon() as daemon:
        chosen = _chosen(daemon.devices(), device, READY)
        with told(daemon, chosen.id, aside if as_json else say):
            daemon.identify_device(chosen.id)
    if as_json:
        answer({"device_id": chosen.id, "shown": True})


@app.command()
def cancel(context: typer.Context, device: DeviceId = None, as_json: Json = False) -> None:
    """Give up what runs on a device."""
    with desk_of(context).daemon() as daemon:
        chosen = _chosen(daemon.devices(), device, None)
        daemon.cancel_device(chosen.id)
    if as_json:
        answer({"device_id": chosen.id, "cancelled": True})


@app.command("another-address")
def another_address(context: typer.Context, device: DeviceId = None, as_json: Json = False) -> None:
    """Say that a device shows another address than this machine: its question ends at once, and that is written down."""
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
    return f"{_WORDS.get(device.advisories[0].severity, _FLAW)}: {', '.join(flaw.id for flaw in device.advisories)}."


def register(
    context: typer.Context,
    device: Annotated[str | None, typer.Option(metavar="ID", help="Where several are ready.")] = None,
    replace: Annotated[bool, typer.Option(help="In place of keys that are registered already.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Register the keys of your device with the platform, once, after you compared the fingerprint."""
    from signerd.cli.follow import told

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


COMMANDS = (register,)
