"""setup: check what signing in needs, sign in, and say what comes next.

It finds a locked keyring before a password is typed, and a device without permissions before the first
payment.
"""

from typing import Any

import click

from custody.common.terminal import Exit
from signerd.cli.account import configured, settings, signed_in, signed_in_words
from signerd.cli.daemon import examined, finding_text
from signerd.cli.desk import Desk, answering
from signerd.errors import ConfigMissing

PLATFORM = "Address of the platform (https://…)"
# The doctor's checks that must pass, and the exit status where one does not.
NEEDED = {
    "libraries": Exit.DEVICE,
    "permissions": Exit.DEVICE,
    "secrets": Exit.SIGNED_OUT,
    "platform": Exit.PLATFORM,
    "clock": Exit.PLATFORM,
}


@settings
@answering
def setup(desk: Desk, **given: Any) -> None:
    """Begin here: check the keyring, the devices' permissions and the platform, then sign in.

    Nothing is written before the first success, and no password is asked for while a check fails.
    """
    if given["platform"] is None and not _is_configured(desk):
        given["platform"] = desk.answers.line(PLATFORM).strip()
    config, write = configured(desk, given)
    _, findings = examined(desk, config, NEEDED)
    for name, finding in findings.items():
        desk.tell(finding_text(name, finding))
    # A check that could not be run does not count.
    status = next((NEEDED[name] for name, finding in findings.items() if finding.outcome == "trouble"), None)
    if status is not None:
        desk.tell("\nMend what is marked TROUBLE, then run `signerd setup` again. Nothing was asked.")
        raise click.exceptions.Exit(status)
    done = signed_in(desk, config)
    write()
    desk.give(done, f"{signed_in_words(done)}\n{_next(desk)}")


def _is_configured(desk: Desk) -> bool:
    from signerd.account.config import find_config

    try:
        find_config(desk.state)
    except ConfigMissing:
        return False
    return True


def _next(desk: Desk) -> str:
    run = "" if desk.running() else "  `signerd run`, in a window of its own\n"
    return (
        f"Next, with your device connected:\n{run}"
        "  `signerd register` gives the platform your device's public keys\n"
        "  `signerd vaults`, once the vault is made; then pin NAME: compare it with the other signers"
    )
