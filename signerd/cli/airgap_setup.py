"""register --file, pin --enrolment-file: registering a device without a cable, and enrolling a vault on
it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from signerd.cli.airgap import written
from signerd.cli.desk import Desk, read_file
from signerd.cli.terminal import Exit
from signerd.errors import AnswerMissing, InvalidRequest

if TYPE_CHECKING:
    from signerd.cli.progress import Tell
    from signerd.client import DaemonClient
    from signerd.shapes import Compared, Registered

# The daemon's bound.
MAX_EXPORT_BYTES = 16 * 1024
NOTHING_ASKED = "Nothing was registered."


def exports_of(files: tuple[Path, ...]) -> tuple[str, ...]:
    """The text of each. Raises InvalidRequest."""
    return tuple(_text(file) for file in files)


def register_files(
    desk: Desk,
    daemon: "DaemonClient",
    exports: tuple[str, ...],
    digest: str,
    challenge_file: Path | None,
    tell: "Tell",
    *,
    replace: bool,
) -> "Registered":
    """Have the challenge signed on the device, and register. Raises AnswerMissing, InvalidRequest."""
    asked = daemon.challenge_airgapped(exports, digest)
    tell(
        f"Sign this line on your device, as it is, with the key at {asked.path}, within ten minutes:\n\n"
        f"{asked.challenge}\n"
    )
    if challenge_file is not None:
        path = written(asked.file.encode(), asked.file_name, challenge_file, NOTHING_ASKED)
        tell(f"Written: {path} (Coldcard: Advanced, File Management, Sign Text File)")
    given = desk.answers.line("The file that the device wrote, or the signature itself").strip()
    if not given:
        raise AnswerMissing("there is no signature", hint=NOTHING_ASKED)
    signature = _text(Path(given)) if Path(given).is_file() else given
    return daemon.register_airgapped(exports, digest, asked.challenge, signature, replace=replace)


def compared_on_device(
    desk: Desk, daemon: "DaemonClient", vault_id: str, out: Path, form: str, tell: "Tell"
) -> "Compared":
    """Write the vault's file for the device, and ask which address it shows."""
    found = daemon.enrolment(vault_id, form)
    path = written(found.text.encode(), found.file_name, out, "Nothing was pinned.")
    tell(
        f"Written: {path}\nLoad it on your device, and look at the vault's first receive address there "
        f"(Coldcard: Address Explorer). It must be\n\n  {found.first_address}\n"
    )
    said = desk.answers.line("Does your device show this very address? Type `same` or `another`").strip()
    if said == "same":
        return "same"
    if said == "another":
        return "another"
    tell("Nothing was pinned.")
    raise click.exceptions.Exit(Exit.DECLINED)


def _text(file: Path) -> str:
    try:
        return read_file(file, MAX_EXPORT_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{file} is not text", hint="Give the file that the device wrote.") from None
