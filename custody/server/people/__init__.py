"""Organisations, workspaces, roles, members, and who confirms a change."""
