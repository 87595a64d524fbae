"""Desktop notifications of what needs the person, each sent by a child process of its own."""
