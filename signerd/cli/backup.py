"""backup, restore."""

from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signerd.cli.desk import Desk, json_option, pass_desk, yes_option
from signerd.cli.terminal import Exit, answer, aside, say
from signerd.core.states import network_words
from signerd.core.text import count, plain

if TYPE_CHECKING:
    from signerd.backup.restoring import BackupSummary

CAREFUL = """\
What was decided after that is unknown here. Stop the signerd that this backup is from for good: two of one
signer do not know of each other.
Nothing is approved until the platform was asked what you signed since. What it hides, this machine cannot
know, and it never learns of an export or an app's PSBT that you signed: compare with the other signers what
was paid since."""


@pass_desk
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--recipient", metavar="age1…", help="Encrypt to this public key of age, and not under a passphrase."
)
@json_option
def backup(desk: Desk, file: Path, recipient: str | None, as_json: bool) -> None:
    """Back up the state folder into one encrypted file (age): pins, registrations, rules, what was signed,
    the chain of decisions. It holds no key, no session and no app's token.
    """
    from datetime import UTC, datetime

    from signerd.backup.writing import back_up
    from signerd.errors import BackupNotMade

    if lexists(file):
        raise BackupNotMade(f"{file} is there already", hint="Nothing was asked and nothing was overwritten.")
    if not file.parent.is_dir():
        raise BackupNotMade(f"{file.parent} is not a folder", hint="Nothing was asked.")
    passphrase = None
    if recipient is None:
        passphrase = desk.answers.secret("Choose a passphrase for the backup", fresh=True)
    made, mark = back_up(desk.state, file, datetime.now(UTC), passphrase=passphrase, recipient=recipient)
    if as_json:
        answer({"file": str(file), "fingerprint": mark, **made.model_dump(mode="json")})
        return
    entries = count(made.entries, "entry", "entries")
    say(f"Written: {file}, with {entries} of the chain of decisions, head {made.head}")
    say(f"Fingerprint of all that is in it: {mark}")
    say(
        "Keep it on another disk. Write the fingerprint down: `restore` shows the same one where nothing in "
        "it was changed."
    )


@pass_desk
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--identity",
    type=click.Path(path_type=Path),
    metavar="KEYFILE",
    help="The file of age-keygen with the secret key, where it was encrypted to a public key.",
)
@yes_option
@json_option
def restore(desk: Desk, file: Path, identity: Path | None, yes: bool, as_json: bool) -> None:
    """Restore the state folder from a backup. It must not exist yet, or be empty."""
    from signerd.backup.container import fingerprint, unpack
    from signerd.backup.restoring import restore as restore_backup
    from signerd.backup.sealing import open_by, open_with, read_sealed, wants_passphrase
    from signerd.errors import InvalidRequest

    tell = aside if as_json else say
    sealed = read_sealed(file)
    if wants_passphrase(sealed):
        content = open_with(sealed, desk.answers.secret("Passphrase of the backup"))
    elif identity is None:
        raise InvalidRequest(
            "the backup is encrypted to a public key", hint="Name the file with its secret key: --identity."
        )
    else:
        content = open_by(sealed, identity)
    found = unpack(content)

    def accept(found: "BackupSummary") -> bool:
        tell(backup_summary_text(found, by_passphrase=identity is None))
        return yes or desk.answers.yes("Restore it?")

    if not restore_backup(found, desk.state, accept):
        raise click.exceptions.Exit(Exit.DECLINED)
    if as_json:
        answer(
            {
                "state_folder": str(desk.state),
                "fingerprint": fingerprint(found),
                **found.manifest.model_dump(mode="json"),
            }
        )
        return
    named = "signerd" if desk.given is None else f"signerd --state {desk.given}"
    say(f"Restored to {desk.state}. Run `{named} login`, then `{named} run`; pair apps again.")


def backup_summary_text(found: "BackupSummary", *, by_passphrase: bool) -> str:
    """What the person checks before the restore."""
    lines = [
        f"Backup of {found.made_at:%Y-%m-%d %H:%M} UTC by signerd {_one_line(found.signerd)}",
        f"  content   {found.fingerprint}",
        f"  network   {network_words(str(found.network))}",
        f"  chain     {count(found.entries, 'entry', 'entries')}, head {found.head}",
        f"  signed    {found.signatures}",
        *(f"  pinned    '{_one_line(name)}'  {code}" for name, code in found.pins),
        *(f"! {_one_line(note)}" for note in found.notes),
    ]
    if found.unclear:
        lines.append(
            f"! {found.unclear} may have been signed on the device when it was made: none is signed again "
            "unasked."
        )
    if found.undelivered:
        lines.append(
            f"! Signatures that the platform did not have when it was made: {found.undelivered}. None is "
            "submitted, for you may have declined it since. `signerd proposals --all` shows what is over."
        )
    if not by_passphrase:
        lines.append(
            "! Anyone can encrypt to a public key: compare the content's fingerprint with the one that "
            "you wrote down, and "
            "the codes with the other signers or your emergency kit."
        )
    return "\n".join((*lines, CAREFUL))


def _one_line(text: str) -> str:
    """Text from a backup, on one line: it must not be able to start another one."""
    return plain(" ".join(text.split()))
