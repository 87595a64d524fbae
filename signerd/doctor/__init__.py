"""Read-only checks for common problems, with advice on each."""
