"""Mail: its texts, the jobs that send it, and the two ways to send."""
