"""Vaults: making and replacing them, their controls, and what is stored of them."""
