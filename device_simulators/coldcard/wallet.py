"""A multisig wallet as the device has it on record, and the checks it makes against that record.

Only wsh(sortedmulti): the real device also knows P2SH and wrapped forms, which no vault of ours uses.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from device_simulators.coldcard.errors import CommandRefused, ScriptMismatch
from device_simulators.coldcard.limits import MAX_COSIGNERS, MAX_WALLET_NAME
from multisig import (
    HARDENED,
    DerivationPath,
    Fingerprint,
    KeyOrigin,
    MultisigError,
    OriginKey,
    parse_multisig_script,
)


@dataclass(frozen=True)
class Wallet:
    """M of N cosigners. Raises CommandRefused, in the firmware's words, for a record it would not keep."""

    name: str
    threshold: int
    cosigners: tuple[OriginKey, ...]

    def __post_init__(self) -> None:
        if (
            not 1 <= len(self.name) <= MAX_WALLET_NAME
            or not self.name.isascii()
            or not self.name.isprintable()
        ):
            raise CommandRefused("name must be ascii, 1..20 long")
        if not 1 <= self.threshold <= len(self.cosigners) <= MAX_COSIGNERS:
            raise CommandRefused("M/N range")
        if len(self.paths) != len(self.cosigners):
            raise CommandRefused("dup XFP")

    @cached_property
    def paths(self) -> dict[Fingerprint, DerivationPath]:
        return {key.origin.fingerprint: key.origin.path for key in self.cosigners}

    @property
    def policy(self) -> str:
        return f"{self.threshold} of {len(self.cosigners)}"

    def renamed(self, name: str) -> "Wallet":
        return replace(self, name=name)

    def same_keys(self, other: "Wallet") -> bool:
        return frozenset(self.cosigners) == frozenset(other.cosigners)

    def matches(self, origins: Iterable[KeyOrigin]) -> bool:
        """Are these the wallet's fingerprints, each with a path below its account?"""
        listed = list(origins)
        return len(listed) == len(self.cosigners) and all(
            origin.fingerprint in self.paths and origin.path.starts_with(self.paths[origin.fingerprint])
            for origin in listed
        )

    def fingerprints_xor(self) -> int:
        """How `msck` names a set of cosigners: their fingerprints as little-endian numbers, combined by xor."""
        result = 0
        for fingerprint in self.paths:
            result ^= int.from_bytes(bytes(fingerprint), "little")
        return result

    def check_script(self, script: bytes, origins: Mapping[bytes, KeyOrigin]) -> tuple[str, ...]:
        """Derive every key of the script again from this record; raise ScriptMismatch where one differs.

        Returns how the screen names the keys, in their order.
        """
        threshold, keys = _disassemble(script)
        if (threshold, len(keys)) != (self.threshold, len(self.cosigners)):
            raise ScriptMismatch("wrong M/N in script")
        used = {self._check_key(at, key, origins) for at, key in enumerate(keys, start=1)}
        if list(keys) != sorted(keys):
            raise ScriptMismatch("BIP-67 violation")
        if len(used) != len(self.cosigners):
            raise ScriptMismatch(f"not all keys used: {len(used)} of {len(self.cosigners)}")
        return tuple(self._shown(origins[key]) for key in keys)

    def _shown(self, origin: KeyOrigin) -> str:
        return shown_origin(origin, len(self.paths[origin.fingerprint]))

    def _check_key(self, position: int, key: bytes, origins: Mapping[bytes, KeyOrigin]) -> Fingerprint:
        origin = origins.get(key)
        if origin is None:
            raise ScriptMismatch("unexpected pubkey")
        account = self._account(origin.fingerprint)
        if account is None:
            raise ScriptMismatch(f"pk#{position} wrong, unknown XFP")
        depth = len(account.origin.path)
        if len(origin.path) < depth:
            raise ScriptMismatch(f"pk#{position} wrong, too shallow")
        steps = tuple(origin.path)[depth:]
        if any(step & HARDENED for step in steps):
            raise ScriptMismatch("hard deriv")
        if account.xpub.derive(DerivationPath(steps)).public_key != key:
            raise ScriptMismatch(f"pk#{position} wrong, tried: {shown_origin(origin, depth)}")
        return origin.fingerprint

    def _account(self, fingerprint: Fingerprint) -> OriginKey | None:
        return next((key for key in self.cosigners if key.origin.fingerprint == fingerprint), None)


def _disassemble(script: bytes) -> tuple[int, tuple[bytes, ...]]:
    try:
        return parse_multisig_script(script)
    except MultisigError as error:
        raise ScriptMismatch("not a multisig script") from error


def shown_fingerprint(fingerprint: Fingerprint) -> str:
    """Upper-case, as the device's screen has it."""
    return fingerprint.hex.upper()


def shown_origin(origin: KeyOrigin, depth: int) -> str:
    """The part of a path that cannot be verified from here, the account's, is blanked out."""
    tail = "".join(f"/{step}" for step in tuple(origin.path)[depth:])
    return f"[{shown_fingerprint(origin.fingerprint)}{'/_' * depth}{tail}]"
