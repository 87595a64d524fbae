"""The conformance suite's makes, for the other tests."""

from device_simulators.conformance.makes import *  # noqa: F403
