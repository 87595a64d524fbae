"""What a person looks at: HTML rendered here, behind the same port as the interface for programs (ADR 20)."""
