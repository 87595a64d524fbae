"""Incidents: a flaw of a maker's devices, the vaults that it exposes, and what is done about them."""
