"""The audit log: written, read, exported, sealed and checked."""
