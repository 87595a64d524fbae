"""kit: a pinned vault on paper, from the journal, with or without a running daemon."""

from pathlib import Path

import click

from signerd.cli.desk import Desk, json_option, pass_desk
from signerd.cli.terminal import answer, put, say


@pass_desk
@click.argument("vault_id", metavar="VAULT")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE, not to standard output."
)
@json_option
def kit(desk: Desk, vault_id: str, out: Path | None, as_json: bool) -> None:
    """Make the emergency kit of a pinned vault: one HTML document to print, with the descriptor, the keys,
    the first addresses, and how to move the coins without the platform and without signerd. It holds no
    secret, but reveals the vault's payments.
    """
    from datetime import UTC, datetime

    from signerd.account.config import find_config, load_config
    from signerd.cli.naming import pin_named
    from signerd.errors import FileNotWritten
    from signerd.journal.history import read_pins
    from signerd.journal.storage import write_new
    from signerd.kit.document import kit as document

    config = load_config(find_config(desk.state))
    pin = pin_named(read_pins(desk.state, config.network), vault_id)
    html = document(pin, datetime.now(UTC))
    if out is not None:
        try:
            write_new(out, html.encode())
        except OSError as error:
            raise FileNotWritten(f"{out} cannot be written: {error.strerror}") from error
    if as_json:
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
