"""The faults that a virtual device shows on request, and that the software above must survive."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Self

from device_simulators.errors import InvalidFaults
from device_simulators.seed import Seed
from multisig import DerivationPath


class Phase(StrEnum):
    """The moments of a device's work at which a fault may strike."""

    PROBE = "probe"
    """The host says hello: features, version, session."""
    XPUB = "xpub"
    """A key was asked for, nothing answered yet."""
    RECEIVE = "receive"
    """The transaction is on its way to the device, and nothing was shown yet."""
    PROMPT = "prompt"
    """A prompt is on the screen."""
    SIGN = "sign"
    """The person said yes to everything, and no signature exists yet."""
    RETURN = "return"
    """Every signature is made, and the last of them is not yet delivered."""


@dataclass(frozen=True)
class Faults:
    """What goes wrong and when. By default nothing does.

    `stall_at`: from this phase on nothing is answered, for ever; the device is still there. `vanish_at`: at
    this phase the device is gone, as when the cable is pulled. `garbage_at`: at this phase one answer is
    replaced by bytes that are not a frame. `wrong_signatures`, `missing_signatures`: input indexes whose
    signature is over another digest, or missing.
    """

    stall_at: Phase | None = None
    vanish_at: Phase | None = None
    garbage_at: Phase | None = None
    wrong_signatures: frozenset[int] = frozenset()
    missing_signatures: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> Self:
        """From a plain mapping such as `{"stall_at": "sign", "wrong_signatures": [0]}`.

        :raises InvalidFaults: an unknown name, phase or index.
        """
        unknown = sorted(values.keys() - {field.name for field in fields(cls)})
        if unknown:
            raise InvalidFaults(f"there is no fault called {', '.join(unknown)}")
        return cls(
            stall_at=_parse_phase(values.get("stall_at")),
            vanish_at=_parse_phase(values.get("vanish_at")),
            garbage_at=_parse_phase(values.get("garbage_at")),
            wrong_signatures=_parse_indexes(values.get("wrong_signatures", [])),
            missing_signatures=_parse_indexes(values.get("missing_signatures", [])),
        )

    def signature(self, seed: Seed, path: DerivationPath, index: int, digest: bytes) -> bytes | None:
        """The signature of an input's digest, DER without the sighash byte; None to leave it out."""
        if index in self.missing_signatures:
            return None
        return seed.sign(path, digest[::-1] if index in self.wrong_signatures else digest)


class Silenced(Exception):
    """A fault has struck: the work ends here, and no host is told."""


class Misbehaviour:
    """The faults of one device, from the moment that it is plugged in. `vanish` pulls the cable."""

    def __init__(self, faults: Callable[[], Faults], vanish: Callable[[], None]) -> None:
        self._faults = faults
        self._vanish = vanish
        self._garbage_due = False
        self.silent = False
        """Nothing is answered any more."""

    @property
    def faults(self) -> Faults:
        return self._faults()

    def reach(self, phase: Phase) -> None:
        """:raises Silenced: the device has vanished, or answers nothing from now on."""
        if self.faults.vanish_at is phase:
            self._vanish()
        if phase in {self.faults.vanish_at, self.faults.stall_at}:
            self.silent = True
            raise Silenced
        self._garbage_due = self._garbage_due or self.faults.garbage_at is phase

    def start_over(self) -> None:
        """It is plugged in again."""
        self.silent = self._garbage_due = False

    def take_garbage(self) -> bool:
        """Whether the answer that is about to go out is the one to spoil."""
        due, self._garbage_due = self._garbage_due, False
        return due


def _parse_phase(value: object) -> Phase | None:
    if value is None:
        return None
    try:
        return Phase(str(value))
    except ValueError:
        raise InvalidFaults(f"there is no phase called {value!r}: {', '.join(Phase)}") from None


def _parse_indexes(value: object) -> frozenset[int]:
    if not isinstance(value, list) or not all(type(index) is int and index >= 0 for index in value):
        raise InvalidFaults(f"signatures are named by a list of input indexes, not {value!r}")
    return frozenset(value)
