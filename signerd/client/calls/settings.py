"""What this machine was told to do."""

from signerd import shapes
from signerd.client.flow import Asked
from signerd.client.method import row


class SettingsCalls:
    @row("GET", "/settings", shapes.SettingsView)
    @staticmethod
    def settings() -> Asked:
        return Asked()
