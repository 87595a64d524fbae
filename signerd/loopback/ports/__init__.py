"""What the endpoints ask of the daemon's parts: one protocol for each thing that can be spoken of."""
