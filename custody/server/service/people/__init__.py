"""Organisations, workspaces, roles, members, invitations, and the purchases that a provider reports."""
