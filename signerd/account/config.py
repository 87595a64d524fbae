"""The configuration file ``config.toml`` and the rules file ``rules.toml``: read and validated before
anything starts.

Each mistake is reported with its line. Both files are in the state folder, else in the desktop's own
configuration folder; the configuration may name another place for the rules.
"""

import errno
import os
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FilePath,
    StrictInt,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from custody.client.errors import InsecureUrl
from custody.client.flow import check_url
from custody.common.private_files import read_bounded, written_by_others
from custody.common.text import name_key, plain, require_seen
from custody.schemas.common import IntId, Name
from custody.schemas.errors import fault_words
from firmware_bridge import Endpoint
from multisig import FeeRate, MultisigError, Network, decode_address, encode_address, format_btc, parse_btc
from signerd.core.checks.table import CHECKS, LOWERABLE
from signerd.core.review import HARD_LIMITS
from signerd.core.rules.reading import WrittenRules, written_rules
from signerd.core.text import line_of
from signerd.core.values import DEFAULT_MAX_FEE_PERCENT, DEFAULT_WARN_FEE_PERCENT, SigningLimits
from signerd.errors import ConfigError, ConfigInvalid, ConfigMissing, RulesInvalid

if TYPE_CHECKING:
    from signerd.journal import Journal

NAME = "signerd"
MOST_ADDRESSES = 1_000
# A label stands in the line of a list.
LONGEST_LABEL = 40
FILE = "config.toml"
# Far more than a configuration needs; refuses a device node or a log that was named by mistake.
MAX_CONFIG_BYTES = 256 * 1024


def _endpoint(text: str) -> str:
    Endpoint.parse(text)
    return text


def _safe_url(text: str) -> str:
    try:
        check_url(text)
    except InsecureUrl as error:
        raise ValueError(str(error)) from error
    return text


def _fee(text: str) -> str:
    try:
        fee = parse_btc(text)
    except MultisigError as error:
        raise ValueError(str(error)) from error
    if fee > HARD_LIMITS.max_fee:
        raise ValueError(f"no fee above {format_btc(HARD_LIMITS.max_fee)} BTC is ever signed")
    return text


def _absolute_path(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError('write the whole path, beginning with "/"')
    return path


def _lowerable(name: str) -> str:
    if name in LOWERABLE:
        return name
    what = f'"{name}" may not be lowered' if name in CHECKS else f'there is no check "{name}"'
    raise ValueError(f"{what}; those that may be lowered are {', '.join(LOWERABLE)}")


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlatformSection(_Section):
    """``workspaces`` empty: every workspace of the account that is on this network."""

    url: Annotated[str, AfterValidator(_safe_url)]
    ca_file: FilePath | None = None
    workspaces: tuple[IntId, ...] = ()
    # The platform's bound on a long poll is a minute, and so is what most proxies wait for an answer.
    long_poll_seconds: Annotated[StrictInt, Field(ge=0, le=55)] = 50


# A question that stays open for more than a day was forgotten.
MAX_PERSON_MINUTES = 24 * 60


class DevicesSection(_Section):
    """``sandbox`` false: a device's process keeps all rights of this user. ``person_minutes``: how long a
    question stays on a device's screen before it is cancelled.
    """

    usb: bool = True
    sandbox: bool = True
    endpoints: tuple[Annotated[str, AfterValidator(_endpoint)], ...] = ()
    person_minutes: Annotated[StrictInt, Field(ge=1, le=MAX_PERSON_MINUTES)] = 10


class LimitsSection(_Section):
    """Fees above these limits are refused. The configuration can only lower the built-in ones. BTC as text,
    rates in sat/vB.

    Above ``max_fee_percent`` the person is asked instead where ``[checks]`` lowers ``fee-share``.
    """

    max_fee_btc: Annotated[str, AfterValidator(_fee)] = "0.1"
    max_fee_rate: Annotated[Decimal, Field(gt=0, le=10_000, max_digits=8, decimal_places=3)] = Decimal(1_000)
    max_fee_percent: Annotated[StrictInt, Field(ge=1, le=HARD_LIMITS.max_share_percent)] = (
        DEFAULT_MAX_FEE_PERCENT
    )
    warn_fee_percent: Annotated[StrictInt, Field(ge=1, le=100)] = DEFAULT_WARN_FEE_PERCENT


class ChecksSection(_Section):
    """``lowered``: checks that ask instead of refusing, or warn instead of asking. Every review says so."""

    lowered: tuple[Annotated[str, AfterValidator(_lowerable)], ...] = ()


class SecretsSection(_Section):
    """``keyring``: the desktop's own. ``file``: in the state folder, encrypted under a passphrase, which
    systemd may pass as the credential ``signerd-passphrase``, or a person types at the start.
    """

    store: Literal["keyring", "file"] = "keyring"
    keyring_seconds: Annotated[float, Field(gt=0, le=300)] = 60.0


class LoopbackSection(_Section):
    """``tcp`` false: the private socket alone, without the page and without apps of browsers. ``port`` 0: any
    free one.
    """

    tcp: bool = True
    # Not registered at IANA, outside the ephemeral ranges, and not used by another wallet (Trezor 21325,
    # BitBox 8178, Specter 25441, BTCPay Vault 65092, Frame 1248, KeepKey 1646, Electrum 7777, nodes 8332 and
    # up).
    port: Annotated[StrictInt, Field(ge=0, le=65_535)] = 17_707

    def port_to_serve(self) -> int | None:
        return self.port if self.tcp else None


class NotificationsSection(_Section):
    """``show``: ``plain`` tells the desktop that something waits, and how much: a lock screen shows it to
    passers-by. ``details`` also says what it is about. ``off``: nothing.
    """

    show: Literal["off", "plain", "details"] = "plain"


class BackupSection(_Section):
    """A backup each so many days, into ``folder``, encrypted to ``recipient``: a public key of age, whose
    secret key is kept elsewhere.
    """

    folder: Annotated[Path, AfterValidator(_absolute_path)] | None = None
    every_days: Annotated[StrictInt, Field(ge=1, le=366)] = 7
    recipient: Annotated[str, StringConstraints(pattern=r"^age1[02-9ac-hj-np-z]{58}$")] | None = None

    @model_validator(mode="after")
    def _require_both(self) -> Self:
        if (self.folder is None) != (self.recipient is None):
            raise ValueError("name both the folder and the recipient, or neither")
        return self

    @property
    def scheduled(self) -> bool:
        return self.folder is not None


def labels_of(addresses: Mapping[str, str], network: Network) -> dict[bytes, str]:
    """The names by output script. Raises ValueError with what to write instead."""
    names: set[str] = set()
    labels: dict[bytes, str] = {}
    for written, address in addresses.items():
        name = written.strip()
        if not 0 < len(name) <= LONGEST_LABEL:
            raise ValueError(f'"{plain(name)}" must have 1 to {LONGEST_LABEL} characters')
        try:
            require_seen(name)
        except ValueError as error:
            raise ValueError(f'"{plain(name)}" {error}') from None
        if name_key(name) in names:
            raise ValueError(
                f'"{name}" is there twice: names that look the same are one, whatever their capitals'
            )
        try:
            script = decode_address(address, network)
        except MultisigError as error:
            raise ValueError(f'"{name}": {error}') from error
        if script in labels:
            raise ValueError(f'"{name}" and "{labels[script]}" have the same address: keep one of the names')
        names.add(name_key(name))
        labels[script] = name
    return labels


class Config(_Section):
    """``rules``: the rules file, where it is not ``rules.toml`` beside this one; it must then be there.

    ``addresses``: the person's own address book, name to address. A proposal that pays one of them has the
    name in its title, and one that only resembles it is held; no check asks for less because of it.
    """

    network: Network
    platform: PlatformSection
    devices: DevicesSection = DevicesSection()
    limits: LimitsSection = LimitsSection()
    checks: ChecksSection = ChecksSection()
    secrets: SecretsSection = SecretsSection()
    loopback: LoopbackSection = LoopbackSection()
    notifications: NotificationsSection = NotificationsSection()
    backup: BackupSection = BackupSection()
    rules: Annotated[Path, AfterValidator(_absolute_path)] | None = None
    label: Name = "signing device"
    addresses: Annotated[dict[str, str], Field(max_length=MOST_ADDRESSES)] = Field(default_factory=dict)

    @field_validator("addresses")
    @classmethod
    def _addresses_of_network(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        network = info.data.get("network")
        # A missing network is reported by its own field.
        if network is not None:
            labels_of(value, network)
        return value

    @cached_property
    def labels(self) -> Mapping[bytes, str]:
        """The address book by output script."""
        return labels_of(self.addresses, self.network)

    @cached_property
    def book(self) -> tuple[str, ...]:
        """The address book's addresses, in one spelling."""
        return tuple(encode_address(script, self.network) or "" for script in self.labels)

    def configure(self, journal: "Journal") -> None:
        """What proposals are judged by from now on; the rules have a file of their own."""
        journal.limits, journal.book = self.signing_limits(), self.book
        journal.lowered = frozenset(self.checks.lowered)

    def signing_limits(self) -> SigningLimits:
        return SigningLimits(
            max_fee=parse_btc(self.limits.max_fee_btc),
            max_fee_rate=FeeRate.from_sat_per_vb(self.limits.max_fee_rate),
            max_fee_percent=self.limits.max_fee_percent,
            warn_fee_percent=min(self.limits.warn_fee_percent, self.limits.max_fee_percent),
        )


OWN_FILE = "It decides what is signed here: make it yours alone, with `chmod go-w` or `chown`."


def find_config(state: Path) -> Path:
    """The file to read.

    Raises:
        ConfigMissing: there is none.
    """
    places = (state / FILE, platformdirs.user_config_path(NAME) / FILE)
    for place in places:
        if place.is_file():
            return place
    raise ConfigMissing(f"there is no configuration at {' or '.join(str(place) for place in places)}")


def load_config(path: Path) -> Config:
    """Raises ConfigMissing, or ConfigInvalid with the file, the line and what is wrong there."""
    return read_config(path, _text(path, ConfigInvalid, ConfigMissing))


def _text(path: Path, invalid: type[ConfigError], missing: type[ConfigError]) -> str:
    """Raises ``invalid``, and ``missing`` where it cannot be read at all."""
    try:
        fault, content = written_by_others(path), read_bounded(path, MAX_CONFIG_BYTES)
    except OSError as error:
        kind = invalid if error.errno == errno.EFBIG else missing
        is_lost = error.errno == errno.ENOENT and kind is RulesInvalid
        hint = "Name a file that is there." if is_lost else None
        raise kind(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    if fault is not None:
        raise invalid(fault, hint=OWN_FILE)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise invalid(f"{path} is not text in UTF-8: {error}") from error


def read_config(path: Path, text: str) -> Config:
    """Parse the text of a configuration. ``path`` is named in errors. Raises ConfigInvalid."""
    try:
        return Config.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigInvalid(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = tuple(part for part in first["loc"] if isinstance(part, str))
        line = line_of(text, key)
        where = f"{path}, line {line}" if line else str(path)
        raise ConfigInvalid(f"{where}: {'.'.join(key)}: {fault_words(first)}") from None


RULES_FILE = "rules.toml"


def find_rules(config: Config, state: Path) -> Path | None:
    """The file to read; None where the configuration names none and none is in either usual place.

    One that the configuration names is returned even where it is not there: its absence must not mean "no
    rules".
    """
    if config.rules is not None:
        return config.rules
    places = (state / RULES_FILE, platformdirs.user_config_path(NAME) / RULES_FILE)
    # A dangling symbolic link is a mistake to report, not an absence.
    return next((place for place in places if os.path.lexists(place)), None)


def load_rules(path: Path, network: Network) -> WrittenRules:
    """Raises RulesInvalid: it cannot be read, or with the line and what to write instead."""
    return written_rules(_text(path, RulesInvalid, RulesInvalid), network, file=str(path))


def rules_of(config: Config, state: Path) -> WrittenRules:
    """The rules that a daemon of this configuration starts with, before its journal is opened. Raises
    RulesInvalid.
    """
    path = find_rules(config, state)
    return WrittenRules("", RULES_FILE) if path is None else load_rules(path, config.network)
