"""inspect, sign: a PSBT from a file or from standard input, which the platform knows nothing of."""

import sys
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signerd.cli.desk import Json, Yes, desk_of
from signerd.cli.output import Exit, answer, aside, put, say
from signerd.cli.proposals import decided, status_of
from signerd.cli.words import psbt_text
from signerd.errors import AnswerMissing, InvalidRequest

if TYPE_CHECKING:
    from signerd.shapes import BroughtView

STANDARD = "-"
MAGIC = b"psbt\xff"
Given = Annotated[
    str, typer.Argument(metavar="FILE", help="The PSBT, binary or base64; - reads standard input.")
]


def inspect(context: typer.Context, file: Given, as_json: Json = False) -> None:
    """Show what signing a PSBT would do, and every check. Nothing is stored, and nobody is asked."""
    psbt = _read(file)
    with desk_of(context).daemon() as daemon:
        view = daemon.inspect_psbt(psbt)
    if as_json:
        answer(view)
    else:
        say(psbt_text(view))
    raise typer.Exit(Exit.OK if view.allowed else Exit.NOT_DECIDED)


def sign(
    context: typer.Context,
    file: Given,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="OUT", help="Where to write the signed PSBT, as base64."),
    ] = None,
    acknowledge: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A warning that you have read and sign despite."),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Show what a PSBT does, ask, have it signed on the device, and write it. It is sent nowhere."""
    # What was written to a pipe cannot be asked for an answer.
    if file == STANDARD and not yes:
        raise AnswerMissing(
            "a PSBT from standard input leaves nobody to ask",
            hint="Give a file, or look first and add --yes.",
        )
    if out is not None and lexists(out):
        raise InvalidRequest(f"{out} is there already", hint="Nothing was asked and nothing was overwritten.")
    if out is not None and not out.parent.is_dir():
        raise InvalidRequest(f"{out.parent} is no folder", hint="Nothing was asked.")
    desk, psbt = desk_of(context), _read(file)
    with desk.daemon() as daemon:
        brought = daemon.bring_psbt(psbt)
        if brought.signed_psbt is None:
            view = daemon.proposal(brought.psbt_id)
            final = decided(desk, daemon, view, frozenset(acknowledge or ()), aside, wait=True, yes=yes)
            brought = daemon.brought_psbt(brought.psbt_id)
            if brought.signed_psbt is None:
                raise typer.Exit(status_of(final))
        else:
            aside("You signed it before: this is the same signature again.")
    _hand_out(brought, out, as_json=as_json)


def _hand_out(brought: "BroughtView", out: Path | None, *, as_json: bool) -> None:
    assert brought.signed_psbt is not None, "only what is signed is handed out"
    if out is not None:
        _write(out, brought.signed_psbt)
    if as_json:
        answer(brought)
    elif out is None:
        put(brought.signed_psbt)
    else:
        say(f"Signed: {out}")
    if not as_json and brought.final is not None:
        aside(f"It is complete. Nobody has sent it; the transaction: {brought.final}")


def _write(out: Path, psbt: str) -> None:
    """Never over another file, though it came to be while the person was at the device."""
    try:
        with out.open("x") as file:
            file.write(psbt + "\n")
    except OSError as error:
        hint = (
            "It is signed: the same command with another name writes it, and your device is not asked again."
        )
        raise InvalidRequest(f"{out} cannot be written: {error.strerror}", hint=hint) from None


def _read(file: str) -> str:
    """As base64 in one line. Raises InvalidRequest; what it holds is judged by the daemon."""
    from base64 import b64encode

    raw = _bytes(file)
    if raw.startswith(MAGIC):
        return b64encode(raw).decode("ascii")
    try:
        # As programs and mails break it.
        return "".join(raw.decode("ascii").split())
    except UnicodeDecodeError:
        raise InvalidRequest(f"{file} holds no PSBT, neither binary nor base64") from None


def _bytes(file: str) -> bytes:
    """No more than could be a PSBT."""
    from signerd.shapes.proposals import MAX_PSBT_BODY

    try:
        if file == STANDARD:
            raw = sys.stdin.buffer.read(MAX_PSBT_BODY + 1)
        else:
            with Path(file).open("rb") as opened:
                raw = opened.read(MAX_PSBT_BODY + 1)
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror}") from None
    if len(raw) > MAX_PSBT_BODY:
        raise InvalidRequest(f"{file} is larger than any PSBT that is read here")
    return raw


COMMANDS = (inspect, sign)
