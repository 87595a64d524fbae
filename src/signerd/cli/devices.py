"""devices, register."""

from typing import TYPE_CHECKING, Annotated

import typer

from signerd.cli.desk import Json, Yes, desk_of
from signerd.cli.exits import Exit
from signerd.cli.output import answer, aside, say, table
from signerd.cli.words import network_words

if TYPE_CHECKING:
    from signerd.loopback.shapes import DeviceView, RegistrationPreview

REGISTRATION = "registration"
REPLACING = (
    "\n  This device takes the place of the one that is registered now, for good. A vault keeps the keys it was made with:\n"
    "  of those that hold the former device's key nothing is signed here any more. Have their coins moved on."
)
# A severity that a newer daemon knows is a known flaw here.
_STOP, _FLAW = "STOP USING IT", "KNOWN FLAW"
_WORDS = {"stop-using": _STOP}


def devices(context: typer.Context, as_json: Json = False) -> None:
    """List the devices that are connected, and what each needs."""
    with desk_of(context).daemon() as daemon:
        found = daemon.devices()
    if as_json:
        answer(found)
    elif not found:
        say("No device is connected.")
    else:
        table(("ID", "MODEL", "FIRMWARE", "FINGERPRINT", "STATE", ""), [_row(device) for device in found])


def _row(device: "DeviceView") -> tuple[str, ...]:
    name = f"{device.model} ({device.label})" if device.label else device.model
    notes = (("virtual" if device.virtual else None), device.detail, device.advice, _flaws(device))
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


COMMANDS = (devices, register)
