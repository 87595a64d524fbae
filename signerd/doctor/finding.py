"""A check, what it examines, and its finding."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique
from functools import cached_property, partial
from pathlib import Path

from signerd.account.config import Config, find_config, load_config
from signerd.errors import SignerdError
from signerd.shapes import Status


@unique
class DoctorOutcome(StrEnum):
    WELL = "well"
    # Worth knowing; signing works.
    NOTE = "note"
    TROUBLE = "trouble"
    # The check failed or took too long.
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class DoctorFinding:
    """``found``: the fact. ``why``: why it matters. ``do``: what to do; both empty where all is well."""

    outcome: DoctorOutcome
    found: str
    why: str = ""
    do: str = ""


well = partial(DoctorFinding, DoctorOutcome.WELL)
note = partial(DoctorFinding, DoctorOutcome.NOTE)
trouble = partial(DoctorFinding, DoctorOutcome.TROUBLE)
unknown = partial(DoctorFinding, DoctorOutcome.UNKNOWN)


def of_error(error: SignerdError, why: str) -> DoctorFinding:
    return DoctorFinding(DoctorOutcome.TROUBLE, str(error), why, error.hint)


@dataclass
class Installation:
    """``root``: of the file system. ``now``: Unix seconds of the examined clock. ``status``: None where no
    daemon answers. ``proposed``: a configuration that is not written yet.
    """

    state: Path
    root: Path
    environment: Mapping[str, str] = field(repr=False)
    now: Callable[[], float]
    status: Status | None = None
    proposed: Config | None = None

    @cached_property
    def config(self) -> Config:
        """Raises ConfigMissing, ConfigInvalid."""
        return self.proposed or load_config(find_config(self.state))


Examination = Callable[[Installation], DoctorFinding]
