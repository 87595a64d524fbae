"""What this machine was told to do."""

from signerd.client.flow import Asked
from signerd.client.method import row
from signerd.loopback import shapes


class SettingsCalls:
    @row("GET", "/settings", shapes.SettingsView)
    @staticmethod
    def settings() -> Asked:
        return Asked()
