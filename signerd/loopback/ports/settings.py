"""The port for the configuration: read, never written. It is changed in its file, and taken up at the next start."""

from typing import Protocol

from signerd.shapes import SettingsView


class SettingsPort(Protocol):
    async def shown(self) -> SettingsView: ...
