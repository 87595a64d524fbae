"""Work that is done beside requests, at least once."""
