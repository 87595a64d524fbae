"""Following the chains, and offering transactions to them."""
