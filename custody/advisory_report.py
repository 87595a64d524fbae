"""How long an incident or a drill took, step by step: from the advisory to the last sweep in a block."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from custody.schemas.advisories import ShownAdvisory, VaultExposure
from custody.schemas.common import Label, Shape, Timestamp
from custody.schemas.evacuations import Evacuation


class Step(NamedTuple):
    """``seconds``: since the advisory was taken. None: not reached yet."""

    what: str
    at: datetime | None
    seconds: int | None


class ReportedStep(Shape):
    what: Label
    at: Timestamp | None
    seconds: int | None


class IncidentReport(Shape):
    """``exposed_vaults``: how many the reader sees now. ``left``: the vaults that were not swept, and why."""

    advisory: Label
    is_drill: bool
    exposed_vaults: int
    evacuation_id: Label
    steps: list[ReportedStep]
    left: dict[Label, Label]


def steps(advisory: ShownAdvisory, evacuation: Evacuation) -> tuple[Step, ...]:
    moments = (
        ("the advisory was taken, and what it exposes was there", advisory.taken_at),
        ("the evacuation was asked for", evacuation.asked_at),
        ("a second person said yes", evacuation.started_at),
        ("the replacements were ready", evacuation.replaced_at),
        ("every sweep awaited approval", evacuation.proposed_at),
        ("the last sweep was in a block", evacuation.confirmed_at),
    )
    return tuple(Step(what, at, _seconds(advisory.taken_at, at)) for what, at in moments)


def of_advisory(
    advisory: ShownAdvisory, exposed: Iterable[VaultExposure], found: Iterable[Evacuation]
) -> list[Evacuation]:
    """The evacuations of exposed vaults that were requested after the advisory was taken, oldest first."""
    ids = {each.vault_id for each in exposed}
    since = [
        each
        for each in found
        if (each.asked_at or each.started_at) >= advisory.taken_at
        and any(vault.vault_id in ids for vault in each.vaults)
    ]
    return sorted(since, key=lambda each: each.started_at)


def report(
    advisory: ShownAdvisory, evacuation: Evacuation, exposed: Sequence[VaultExposure]
) -> IncidentReport:
    return IncidentReport(
        advisory=advisory.name,
        is_drill=advisory.is_drill,
        exposed_vaults=len(exposed),
        evacuation_id=evacuation.evacuation_id,
        steps=[ReportedStep.model_validate(each._asdict()) for each in steps(advisory, evacuation)],
        left={each.vault_name: each.reason for each in evacuation.vaults if each.reason},
    )


def words(seconds: int | None) -> str:
    """``1 h 02 min 03 s``, or ``not yet``."""
    if seconds is None:
        return "not yet"
    hours, rest = divmod(seconds, 3_600)
    minutes, left = divmod(rest, 60)
    return f"{hours} h {minutes:02} min {left:02} s" if hours else f"{minutes} min {left:02} s"


def _seconds(since: datetime, at: datetime | None) -> int | None:
    return None if at is None else int((at - since).total_seconds())
