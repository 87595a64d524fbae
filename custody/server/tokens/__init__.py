"""Tokens: made, called, listed, held. What is to be signed is drafted outside the write lock."""
