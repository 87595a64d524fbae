"""Organisations, workspaces, roles, members, invitations, and what reaches them from outside."""
