"""What this machine was configured to do, as it was read when the daemon started."""

from signerd.shapes.common import Answer


class LoweredView(Answer):
    """A check that the configuration lowers. ``guards``: what it makes sure of; ``becomes``: "asks" or "warns"."""

    name: str
    guards: str
    becomes: str


class SettingsView(Answer):
    """``rules`` are those of rules.toml, each in a sentence, in the order in which they are judged. ``max_fee_rate``: sat/vB.

    ``workspaces`` empty: every one of the account that is on this network. ``endpoints``: devices that no USB bus shows.
    """

    network: str
    label: str
    state_folder: str
    platform_url: str
    own_authority: bool
    workspaces: tuple[int, ...]
    secrets: str
    usb: bool
    endpoints: tuple[str, ...]
    max_fee_sats: int
    max_fee_rate: str
    max_fee_percent: int
    warn_fee_percent: int
    lowered: tuple[LoweredView, ...]
    rules: tuple[str, ...]
