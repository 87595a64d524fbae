"""What may be moved: the policies of roles and vaults, and what is used of them."""
