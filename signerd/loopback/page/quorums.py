"""A vault that the person has from elsewhere, as text in a form: read and proven whole before anything is compared."""

from multisig import MultisigError, Network, Psbt, vault_of_file, vault_of_psbt
from signerd.errors import InvalidRequest
from signerd.loopback.page.asked import Fields, shaped
from signerd.shapes import BroughtQuorum

# What a form may carry through the door (64 KiB, and "+" and "/" of base64 cost three bytes each there).
MAX_TEXT = 40_000


def quorum_in(fields: Fields, network: Network) -> BroughtQuorum | None:
    """None: the platform's record. A vault that was read before comes back as its descriptor; ``network``: this daemon's own.

    Raises InvalidRequest.
    """
    source = fields.one("source")
    if source in {"", "record"}:
        return None
    if fields.one("descriptor"):
        return shaped(BroughtQuorum, source=source, descriptor=fields.one("descriptor"))
    text = fields.one("text").strip()
    if not text.isascii() or not text or len(text) > MAX_TEXT:
        raise InvalidRequest(
            f"paste up to {MAX_TEXT:,} characters of plain text",
            hint="What is larger, or no text, is given to `signerd pin --from` or `--psbt`.",
        )
    try:
        vault = vault_of_psbt(Psbt.parse(text), network) if source == "psbt" else vault_of_file(text, network)
    except MultisigError as error:
        raise InvalidRequest(f"this has no vault that can be pinned: {error}", hint=error.hint) from error
    return shaped(BroughtQuorum, source=source, descriptor=vault.descriptor)
