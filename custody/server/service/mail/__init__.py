"""Mail: its texts, the jobs that send it, and the ways it leaves."""
