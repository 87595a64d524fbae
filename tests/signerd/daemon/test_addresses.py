"""Accounts and addresses of this signer: derived here, shown by the device, and an alarm where the two
differ.
"""

import asyncio
from contextlib import suppress

import pytest

from firmware_bridge import AddressMismatch, NotEnrolled, RefusedByPerson, Unsupported
from multisig import MAX_INDEX, Network, encode_address
from signerd.callers import PAGE, TERMINAL, CallerKind, LoopbackCaller, Right
from signerd.daemon import vaults
from signerd.daemon.devices import PIN_AGAIN
from signerd.daemon.unlocking import Prompts
from signerd.errors import (
    AddressDiffers,
    AddressNotShown,
    DeviceFailed,
    NoRegisteredKey,
    NotPinned,
    TooManyPrompts,
    UnknownVault,
)
from tests.support.daemons import daemon_at, noted, told, until
from tests.support.desk import PROFILE, VAULT, VAULT_ID
from tests.support.wallets import ALICE

pytestmark = pytest.mark.anyio
APP = LoopbackCaller(CallerKind.APP, "Till", frozenset({Right.DISPLAY, Right.XPUB}), "app-1")
OTHER = LoopbackCaller(CallerKind.APP, "Shop", frozenset({Right.DISPLAY}), "app-2")


# --- without a device ---------------------------------------------------------------------------------------


async def test_the_chain_has_an_end(daemon):
    page = await vaults.profile_addresses(daemon, 0, MAX_INDEX, 5)
    assert [one.index for one in page.addresses] == [MAX_INDEX]
    assert page.addresses[0].address == PROFILE.address(0, MAX_INDEX)


async def test_s16_a_vault_that_is_not_pinned_has_no_addresses_here(daemon):
    await vaults.unpin(daemon, VAULT_ID, VAULT.verification_code)
    with pytest.raises(NotPinned):
        await vaults.vault_addresses(daemon, VAULT_ID, 0, 0, 1)
    with pytest.raises(NotPinned):
        await vaults.show_vault_address(daemon, VAULT_ID, 0, 0, TERMINAL)
    with pytest.raises(UnknownVault):
        await vaults.vault_addresses(daemon, "vault-404", 0, 0, 1)


async def test_without_a_registration_there_is_no_profile(state, platform, bridge):
    async with daemon_at(state, platform, bridge) as daemon:
        with pytest.raises(NoRegisteredKey, match="no profile key of a device of yours is registered"):
            await vaults.profile_addresses(daemon, 0, 0, 1)
        assert (await vaults.accounts(daemon)).fingerprint is None


# --- on the device ------------------------------------------------------------------------------------------


async def test_the_device_shows_an_address_of_the_vault(daemon, bridge):
    shown = await vaults.show_vault_address(daemon, VAULT_ID, 0, 5, TERMINAL)
    screen = encode_address(VAULT.script_pubkey(0, 5), Network.TESTNET4)
    assert (shown.address, shown.on_screen) == (VAULT.address(0, 5), screen)
    assert bridge.shown == [VAULT.address(0, 5)]
    (said,) = told(daemon, VAULT_ID, "progress")
    assert VAULT.address(0, 5) in said
    assert screen in said
    assert "receive address 5 of the vault 'Treasury'" in said
    shown = await vaults.show_profile_address(daemon, 1, 2, PAGE)
    assert shown.address == PROFILE.address(1, 2) == bridge.shown[-1]


@pytest.mark.parametrize("whose", ["vault", "profile", "pinned"])
async def test_s13_another_address_on_the_device_is_an_alarm_that_is_kept(daemon, bridge, whose):
    bridge.showing.append(AddressMismatch(detail="tb1q\x1b[2Jother"))
    show = {
        "vault": lambda: vaults.show_vault_address(daemon, VAULT_ID, 0, 3, APP),
        "profile": lambda: vaults.show_profile_address(daemon, 0, 3, APP),
        "pinned": lambda: vaults.pin(daemon, VAULT_ID, VAULT.verification_code),
    }[whose]
    if whose == "pinned":
        await vaults.unpin(daemon, VAULT_ID, VAULT.verification_code)
    with pytest.raises(AddressDiffers, match="ALARM") as refused:
        await show()
    assert "Send nothing to either address" in refused.value.hint
    (note,) = noted(daemon, "address-differs")
    subject, policy = (bridge.device.id, PROFILE) if whose == "profile" else (VAULT_ID, VAULT)
    index = 0 if whose == "pinned" else 3
    assert (note.subject, note.facts["address"]) == (subject, policy.address(0, index))
    assert (daemon.journal.pin(VAULT_ID) is None) is (whose == "pinned")
    (alarm,) = told(daemon, subject, "alarm")
    assert "\x1b" not in alarm
    assert policy.address(0, index) in alarm


@pytest.mark.parametrize(
    ("outcome", "error", "hint"),
    [
        (RefusedByPerson(), DeviceFailed, RefusedByPerson.hint),
        (NotEnrolled(), DeviceFailed, PIN_AGAIN),
        (Unsupported(), AddressNotShown, "another signer"),
    ],
    ids=["refused", "not enrolled", "cannot"],
)
async def test_what_the_device_does_not_show_is_no_alarm(daemon, bridge, outcome, error, hint):
    bridge.showing.append(outcome)
    with pytest.raises(error) as refused:
        await vaults.show_vault_address(daemon, VAULT_ID, 0, 0, PAGE)
    assert hint in refused.value.hint
    assert noted(daemon, "address-differs") == []


async def test_l5_a_device_tells_the_keys_of_the_two_standard_accounts_and_no_others(daemon, bridge):
    found = await daemon.device_accounts(bridge.device.id, 3, APP)
    assert [(key.purpose, key.account, key.path) for key in found.keys] == [
        ("vault", 3, "m/48h/1h/3h/2h"),
        ("profile", 3, "m/84h/1h/3h"),
    ]
    assert found.fingerprint == str(ALICE.fingerprint)


# --- how often ----------------------------------------------------------------------------------------------


async def test_l6_an_app_has_one_turn_at_a_time_and_others_have_theirs(daemon, bridge):
    bridge.gate = asyncio.Event()
    first = asyncio.create_task(vaults.show_vault_address(daemon, VAULT_ID, 0, 0, APP))
    await until(lambda: bool(bridge.shown))
    for again in (
        vaults.show_profile_address(daemon, 0, 0, APP),
        daemon.identify_device(bridge.device.id, APP),
        daemon.device_accounts(bridge.device.id, 0, APP),
    ):
        with pytest.raises(TooManyPrompts, match="already"):
            await again
    assert (len(bridge.shown), bridge.identified) == (1, 0)
    bridge.gate.set()
    await first
    for caller in (OTHER, APP, PAGE):
        await daemon.identify_device(bridge.device.id, caller)
    # The person is told of a program that asked.
    asked = [line for line in told(daemon, bridge.device.id, "progress") if "asked by the program" in line]
    assert ["'Till'" in line for line in asked] == [False, True]


def test_l6_the_minute_slides_and_a_turn_that_fails_is_over_and_counts():
    now = [0.0]
    prompts = Prompts(lambda: now[0], most=2)

    def ask() -> None:
        with suppress(ZeroDivisionError), prompts.turn(APP):
            raise ZeroDivisionError

    ask()
    now[0] = 30.0
    ask()
    now[0] = 59.9
    with pytest.raises(TooManyPrompts, match="a minute"):
        ask()
    now[0] = 60.0
    ask()
    with pytest.raises(TooManyPrompts):
        ask()
