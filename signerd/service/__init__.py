"""signerd as a service of the system's service manager: systemd or launchd."""
