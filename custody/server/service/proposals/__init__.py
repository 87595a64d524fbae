"""Proposals: coins, fees and limits of what is drafted; storing, verifying and showing it."""
