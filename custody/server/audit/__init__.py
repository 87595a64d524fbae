"""The audit log: hash chains, their checkpoints, their verification and export."""
