"""A virtual Trezor, model 1, on UDP: its wire protocol, its screen, its refusals."""
