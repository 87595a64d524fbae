"""Virtual signing devices that speak their vendors' wire protocols, so that unmodified HWI drives them as
hardware.
"""
