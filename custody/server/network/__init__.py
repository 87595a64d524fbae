"""Following the chains, and broadcasting transactions."""
