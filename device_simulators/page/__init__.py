"""A page in the browser with the screens of virtual devices and buttons to press, for those who run them.

``SimulatorDesk`` is what is on the screens; ``serve.serving`` answers for it on loopback.
"""

from device_simulators.page.desk import DeviceScreen, SimulatorDesk, Stand, Story

__all__ = ["DeviceScreen", "SimulatorDesk", "Stand", "Story"]
