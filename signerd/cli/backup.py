"""backup, restore: the state folder in one encrypted file. kit: a pinned vault on paper, from the journal,
with or without a running daemon.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody.common.terminal import Exit, answer, put, say
from custody.common.text import count, plain
from signerd.cli.desk import Desk, answering, asking, path_option, require_new, write_file
from signerd.cli.naming import pin_named
from signerd.core.states import network_words
from signerd.errors import BackupNotMade, InvalidRequest

if TYPE_CHECKING:
    from signerd.backup.restoring import BackupSummary


FINGERPRINT = "Fingerprint of all that is in it"
CAREFUL = """\
What was decided after that is unknown here. Stop the signerd that this backup is from for good: two of one
signer do not know of each other.
Nothing is approved until the platform was asked what you signed since. What it hides, this machine cannot
know, and it never learns of an export or an app's PSBT that you signed: compare with the other signers what
was paid since."""


@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--recipient", metavar="age1…", help="Encrypt to this public key of age, and not under a passphrase."
)
@answering
def backup(desk: Desk, file: Path, recipient: str | None) -> None:
    """Back up the state folder into one encrypted file (age): pins, registrations, rules, what was signed,
    the chain of decisions. It holds no key, no session and no app's token.
    """
    from signerd.backup.writing import LEAST_PASSPHRASE, back_up, short

    require_new(file, BackupNotMade)
    passphrase = None
    if recipient is None:
        question = f"Choose a passphrase for the backup, of {LEAST_PASSPHRASE} characters or more"
        passphrase = desk.answers.secret(question, fresh=True, fault=short)
    made, mark = back_up(desk.state, file, datetime.now(UTC), passphrase=passphrase, recipient=recipient)
    entries = count(made.entries, "entry", "entries")
    desk.give(
        {"file": str(file), "fingerprint": mark, **made.model_dump(mode="json")},
        f"Written: {file}, with {entries} of the chain of decisions, head {made.head}",
        f"{FINGERPRINT}: {mark}",
        "Keep it on another disk. Write the fingerprint down: `restore` shows the same one where nothing in "
        "it was changed.",
    )


@click.argument("file", type=click.Path(path_type=Path))
@path_option(
    "--identity",
    metavar="KEYFILE",
    help="The file of age-keygen with the secret key, where it was encrypted to a public key.",
)
@asking
def restore(desk: Desk, file: Path, identity: Path | None) -> None:
    """Restore the state folder from a backup. It must not exist yet, or be empty."""
    from signerd.backup.container import fingerprint, unpack
    from signerd.backup.restoring import restore as restore_backup
    from signerd.backup.sealing import open_by, open_with, read_sealed, wants_passphrase

    sealed = read_sealed(file)
    if wants_passphrase(sealed):
        content = open_with(sealed, desk.answers.secret("Passphrase of the backup"))
    elif identity is None:
        raise InvalidRequest(
            "the backup is encrypted to a public key", hint="Name the file with its secret key: --identity."
        )
    else:
        content = open_by(sealed, identity)
    backup = unpack(content)

    def accept(summary: "BackupSummary") -> bool:
        desk.tell(backup_summary_text(summary, by_passphrase=identity is None))
        return desk.yes or desk.answers.yes("Restore it?")

    if not restore_backup(backup, desk.state, accept):
        raise click.exceptions.Exit(Exit.DECLINED)
    manifest = backup.manifest.model_dump(mode="json")
    desk.give(
        {"state_folder": str(desk.state), "fingerprint": fingerprint(backup), **manifest},
        f"Restored to {desk.state}. Run `signerd login`, then `signerd run`; pair apps again.",
    )


def backup_summary_text(summary: "BackupSummary", *, by_passphrase: bool) -> str:
    """What the person checks before the restore."""
    made = summary.manifest
    lines = [
        f"Backup of {made.made_at:%Y-%m-%d %H:%M} UTC by signerd {made.signerd}",
        f"{FINGERPRINT}: {summary.fingerprint}",
        f"  network   {network_words(str(made.network))}",
        f"  chain     {count(made.entries, 'entry', 'entries')}, head {made.head}",
        f"  signed    {summary.signatures}",
        *(f"  pinned    '{_one_line(name)}'  {code}" for name, code in summary.pins),
        *(f"! {_one_line(note)}" for note in summary.notes),
    ]
    if summary.unclear:
        lines.append(
            f"! {summary.unclear} may have been signed on the device when it was made: none is signed again "
            "unasked."
        )
    if summary.undelivered:
        lines.append(
            f"! Signatures that the platform did not have when it was made: {summary.undelivered}. None is "
            "submitted, for you may have declined it since. `signerd proposals --all` shows what is over."
        )
    if not by_passphrase:
        lines.append(
            "! Anyone can encrypt to a public key: compare the fingerprint with the one that you wrote down, "
            "and the codes with the other signers or your emergency kit."
        )
    return "\n".join((*lines, CAREFUL))


def _one_line(text: str) -> str:
    """Text from a backup, on one line: it must not be able to start another one."""
    return plain(" ".join(text.split()))


@click.argument("vault_id", metavar="VAULT")
@path_option("--out", metavar="FILE", help="Write to FILE, not to standard output.")
@answering
def kit(desk: Desk, vault_id: str, out: Path | None) -> None:
    """Make the emergency kit of a pinned vault: one HTML document to print, with the descriptor, the keys,
    the first addresses, and how to move the coins without the platform and without signerd. It holds no
    secret, but reveals the vault's payments.
    """
    from signerd.account.config import find_config, load_config
    from signerd.journal.storage import read_pins
    from signerd.kit.document import kit as document

    config = load_config(find_config(desk.state))
    pin = pin_named(read_pins(desk.state, config.network), vault_id)
    html = document(pin, datetime.now(UTC))
    if out is not None:
        write_file(out, html.encode())
    if desk.as_json:
        answer(
            {
                "vault_id": pin.vault_id,
                "verification_code": pin.vault.verification_code,
                "descriptor": pin.vault.descriptor,
                **({"html": html} if out is None else {"file": str(out)}),
            }
        )
    elif out is None:
        put(html)
    else:
        say(f"Written: {out}. Open it in a browser and print it. Its code: {pin.vault.verification_code}")
