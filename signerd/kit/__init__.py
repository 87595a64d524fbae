"""The emergency kit: a vault on paper, and how to move its coins without the platform and without signerd."""
