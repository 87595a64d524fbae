"""What a person or a program may ask of this signer: the daemon, its parts, and what they answer."""
