"""A page in the browser with the screens of virtual devices and buttons to press, for whoever runs them.

``Desk`` is what is on the screens; ``serving`` answers for it on loopback.
"""

from device_simulators.page.desk import Desk, Screen, Stand
from device_simulators.page.serve import serving

__all__ = ["Desk", "Screen", "Stand", "serving"]
