"""What happened: the chain of decisions and the feed."""

from signerd.shapes.common import Answer


class AuditReport(Answer):
    """``fault`` is None where every entry follows from the one before; else ``at`` is the place of the first fault.

    Writing ``entries`` and ``head`` down elsewhere shows a tail that was cut off.
    """

    entries: int
    head: str
    at: int | None
    fault: str | None


class AuditEntryView(Answer):
    """An entry of the chain. ``at``: RFC 3339 UTC, the machine's word. ``facts``: names and values in words; ``digest``: hex."""

    sequence: int
    at: str
    kind: str
    subject: str
    facts: tuple[tuple[str, str], ...]
    digest: str


class AuditPage(Answer):
    """``more``: there are others beyond the last of these. ``total``: how long the whole chain is."""

    entries: tuple[AuditEntryView, ...]
    more: bool
    total: int


class Happened(Answer):
    """A line of the feed. ``subject``: a proposal, a vault, a device or "registration".

    ``kind``: ask, progress, device, question, info, attention, alarm, or state, where ``text`` is the proposal's new state.
    "question": a device waits for an answer of the person's; what it asks stands in ``/questions``.
    """

    number: int
    subject: str
    kind: str
    text: str
