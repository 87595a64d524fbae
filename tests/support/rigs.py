"""The conformance suite's virtual devices, for the other tests."""

from device_simulators.conformance.rigs import *  # noqa: F403
