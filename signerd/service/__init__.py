"""signerd under the program that starts services on this system: systemd, launchd, the Task Scheduler."""
