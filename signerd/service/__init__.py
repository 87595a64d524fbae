"""signerd as a service of the system's service manager: systemd, launchd or the Task Scheduler."""
