"""Devices, what they do by hand, and registering the keys of one."""

from types import NoneType

from signerd import shapes
from signerd.client.flow import DEVICE_SECONDS, PERSON_SECONDS, Asked
from signerd.client.method import row


class DeviceCalls:
    @row("GET", "/devices", tuple[shapes.DeviceView, ...])
    @staticmethod
    def devices() -> Asked:
        return Asked()

    @row("POST", "/devices/{device_id}/identify", NoneType, seconds=PERSON_SECONDS)
    @staticmethod
    def identify_device(device_id: str) -> Asked:
        """Have it show itself."""
        return Asked({"device_id": device_id})

    @row("POST", "/devices/{device_id}/cancel", NoneType, seconds=DEVICE_SECONDS)
    @staticmethod
    def cancel_device(device_id: str) -> Asked:
        """Give up what runs on it."""
        return Asked({"device_id": device_id})

    @row("POST", "/devices/{device_id}/another-address", NoneType, seconds=DEVICE_SECONDS)
    @staticmethod
    def another_address(device_id: str) -> Asked:
        """Say that it shows another address than this machine."""
        return Asked({"device_id": device_id})

    @row("POST", "/devices/{device_id}/accounts", shapes.AccountKeys, seconds=PERSON_SECONDS)
    @staticmethod
    def device_accounts(device_id: str, account: int = 0) -> Asked:
        """Read the keys of a standard account; some devices ask the person first."""
        return Asked({"device_id": device_id}, body={"account": account})

    @row("POST", "/registration/preview", shapes.RegistrationPreview, seconds=DEVICE_SECONDS)
    @staticmethod
    def preview_registration(device_id: str | None = None) -> Asked:
        return Asked(query={"device": device_id})

    @row("POST", "/registration", shapes.Registered, seconds=PERSON_SECONDS)
    @staticmethod
    def register(device_id: str, digest: str, *, replace: bool = False) -> Asked:
        """Answers when the person has confirmed on the device; ``follow`` "registration" meanwhile."""
        return Asked(body={"device_id": device_id, "digest": digest, "replace": replace})
