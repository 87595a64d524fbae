"""Loads the libusb that the libusb-package wheel bundles: without one, HWI drives no WebUSB device and its scan fails whole."""

import ctypes

import libusb_package
import usb1


def load() -> bool:
    """Whether there was a bundled library to load; else usb1 looks for the system's own."""
    path = libusb_package.get_library_path()
    if path is None:
        return False
    usb1.loadLibrary(ctypes.CDLL(str(path)))
    return True


LOADED = load()
