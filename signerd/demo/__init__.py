"""The main job on one machine: the platform, virtual devices and a daemon for each signer, as separate
programs.

Every step is a command, a call of the SDK, or a button that a person presses; no internal interface is used.
"""
