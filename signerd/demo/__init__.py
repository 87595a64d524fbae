"""The main job on one machine: the platform, virtual devices and a daemon for each signer, as separate
programs.

Nothing here reaches inside another part: every step is a command, the SDK, or a button that a person presses.
"""
