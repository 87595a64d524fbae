"""Every call, described once. ``DaemonClient`` and ``AsyncDaemonClient`` inherit these as plain and as awaitable methods."""

from signerd.client.calls.account import AccountCalls
from signerd.client.calls.addresses import AddressCalls
from signerd.client.calls.apps import AppCalls
from signerd.client.calls.devices import DeviceCalls
from signerd.client.calls.happenings import HappeningCalls
from signerd.client.calls.metrics import MetricCalls
from signerd.client.calls.page import PageCalls
from signerd.client.calls.proposals import ProposalCalls
from signerd.client.calls.psbts import PsbtCalls
from signerd.client.calls.settings import SettingsCalls
from signerd.client.calls.unlocking import UnlockingCalls
from signerd.client.calls.vaults import VaultCalls
from signerd.client.pairing import PairingCalls


class Api(
    AccountCalls,
    DeviceCalls,
    UnlockingCalls,
    VaultCalls,
    AddressCalls,
    ProposalCalls,
    PsbtCalls,
    SettingsCalls,
    HappeningCalls,
    AppCalls,
    PairingCalls,
    PageCalls,
    MetricCalls,
):
    """The calls. Each raises DaemonNotRunning, DaemonFailed, and the leaves of SignerdError that the daemon answers with."""
