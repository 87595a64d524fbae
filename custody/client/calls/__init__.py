"""Every call of the platform, one file for each section of the specification."""
