"""The contract of `firmware_bridge` with a device, as a pytest suite: `pytest --pyargs
device_simulators.conformance`.
"""
