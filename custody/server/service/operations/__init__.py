"""What an operator and the machines around the platform ask of it: is it well, what waits, what was done."""
