"""HTTP: one table of endpoints, the runner behind each of them, and the map from errors to responses."""
