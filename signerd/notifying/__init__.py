"""Desktop notifications of what needs the person."""
