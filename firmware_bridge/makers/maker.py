"""The shapes of a maker's facts."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from firmware_bridge.errors import BridgeError
from firmware_bridge.limits import DeviceLimits, SigningPace
from firmware_bridge.makers.versions import MAIN, FirmwareVersion
from firmware_bridge.model import Family
from multisig import Vault

# Of makers whose devices were not timed.
_USUAL: Final = SigningPace()


@dataclass(frozen=True)
class UsbModel:
    """A model by its USB numbers. `product_mask` selects the bits of the product id that name the model.

    `names`: product names, where the numbers alone do not tell; empty means any. `transport` is how HWI
    reaches it, or None; `reason` says why it cannot be driven.
    """

    family: Family
    vendor: int
    product: int
    model: str
    transport: str | None = "hid"
    product_mask: int = 0xFFFF
    names: tuple[str, ...] = ()
    reason: str | None = None

    def matches(self, vendor: int, product: int, name: str | None = None) -> bool:
        if vendor != self.vendor or product & self.product_mask != self.product:
            return False
        return not self.names or name in self.names


IN_BOOTLOADER: Final = "The device is in its bootloader: connect it again without pressing a button."
NOT_KNOWN_TO_HWI: Final = "HWI does not know this model."
DROPPED_BY_HWI: Final = "HWI no longer supports this model."


@dataclass(frozen=True)
class Names:
    """Names of vaults that devices take: printable ASCII of at most `most` characters.

    `misread`: what they take for something else; `but` says so. `mends`: patterns, and what takes their
    place.
    """

    most: int
    misread: re.Pattern[str] | None = None
    but: str = ""
    mends: tuple[tuple[re.Pattern[str], str], ...] = ()

    def fit(self, name: str) -> bool:
        plain = name.isascii() and name.isprintable() and name == name.strip()
        return plain and 1 <= len(name) <= self.most and not (self.misread and self.misread.search(name))


@dataclass(frozen=True)
class Style:
    """How a maker's devices tell a payment, and a signed message.

    `unit`: of every test network; mainnet's is BTC. `trimmed`: without zeros at the end. `grouped`: thousands
    in groups (Trezor One 1.14.2; a line that is too long for its screen is cut). `apart`: each output has a
    screen of its own, and so have the figures of `last`. `first`, `last`: what stands before and after the
    outputs, by the names in `firmware_bridge.screens`; `to_itself`: the same before a payment that leaves
    nothing; `proof`: of a vault's message, empty if they sign none; `message`: what they show of one that a
    key signs, in our words. `idle_locktime`: what they say of a lock time without effect; empty if they show
    no lock time at all.
    """

    unit: str
    trimmed: bool
    apart: bool
    first: tuple[str, ...] = ()
    to_itself: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    proof: tuple[str, ...] = ()
    message: tuple[str, ...] = ()
    change: bool = False
    amount_of_data: bool = True
    before_data: str = ""
    idle_locktime: str = ""
    grouped: bool = False


@dataclass(frozen=True)
class Known:
    """What was read in a maker's source, or seen on devices: of the models whose name begins with `model`,
    from firmware `since` to `until` (a Ledger's: of its Bitcoin app). A version between two of those that
    were read is assumed to be like both.
    """

    model: str
    since: str
    until: str

    def covers(self, version: FirmwareVersion) -> bool:
        return FirmwareVersion.of(self.since) <= version <= FirmwareVersion.of(self.until)


@dataclass(frozen=True, kw_only=True)
class DataScreen(Known):
    """OP_RETURN data of up to `whole` bytes is shown whole; of longer data the first `first` bytes, then
    dots.

    The data is a push of bytes that are not printable text, as in a token's payload: a Trezor One shows 80
    bytes of plain text.
    """

    whole: int
    first: int = 0


@dataclass(frozen=True, kw_only=True)
class ProofSigning(Known):
    """How devices treat the PSBT of a signed message (BIP-322).

    `why_not`: why they sign none; empty if they sign for an address. `funds`: they also sign for coins, with
    a screen that a person can check.
    """

    why_not: str = ""
    funds: bool = False

    def signs(self, coins: int) -> bool:
        return not self.why_not and (self.funds or not coins)


Row = TypeVar("Row", bound=Known)


@dataclass(frozen=True)
class Maker:
    """A family: its properties, and which outcome a status, else a phrase (lower case, first match) means.

    `usb`: its models; the first match wins. `udev_rules`: the file of `udev/` that lets the person at
    the machine open its devices. `lines`: the suffixes of its firmware's versions that have a numbering of
    their own. `names`: of vaults; None if its devices keep none. `enrols`: they must know a vault before they
    sign for it; `vault_file`: the file that they take then, of a vault and its name. `shares_session`: a
    device has one session, which a new connection takes away from the last one. `keeps_session`: what
    `unlock` returned stays valid without power. `refuses_address`: the person can refuse an address on the
    device; if not, on the computer. `knows_regtest`: they write its addresses in its own form, where the
    others use testnet's. `hints`: what to do after an outcome, if not `BridgeError.hint`. `pace`: how long
    they work on a transaction. `limits`: by the beginning of the model's name, the first that fits. `style`:
    of their screens. `data_screens`, `proofs`: nothing is known of other models and versions.
    `proves_nonces`: the first firmware whose every signature proves that its nonce includes the host's part.
    """

    name: str
    udev_rules: str
    usb: tuple[UsbModel, ...]
    lines: frozenset[str] = frozenset({MAIN})
    names: Names | None = None
    vault_file: Callable[[Vault, str], str] | None = None
    statuses: Mapping[int, type[BridgeError]] = field(default_factory=dict)
    phrases: tuple[tuple[str, type[BridgeError]], ...] = ()
    shares_session: bool = False
    enrols: bool = False
    keeps_session: bool = False
    hints: Mapping[type[BridgeError], str] = field(default_factory=dict)
    refuses_address: bool = True
    knows_regtest: bool = False
    pace: SigningPace = _USUAL
    limits: Mapping[str, DeviceLimits] = field(default_factory=dict)
    style: Style | None = None
    data_screens: tuple[DataScreen, ...] = ()
    proofs: tuple[ProofSigning, ...] = ()
    proves_nonces: str | None = None

    def limits_of(self, model: str) -> DeviceLimits:
        """The limits of this model."""
        fitting = (limits for start, limits in self.limits.items() if model.startswith(start))
        return next(fitting, DeviceLimits())

    def version(self, firmware: str | None) -> FirmwareVersion | None:
        """None if it is not comparable: not reported, a build between releases, or an unknown line."""
        version = FirmwareVersion.parse(firmware)
        return version if version is not None and version.line in self.lines else None

    def known(self, rows: Iterable[Row], model: str, firmware: str | None) -> Row | None:
        """The row about this model and version, if there is one."""
        version = self.version(firmware)
        fitting = (row for row in rows if model.startswith(row.model))
        return None if version is None else next((row for row in fitting if row.covers(version)), None)
