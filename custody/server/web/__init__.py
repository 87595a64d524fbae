"""HTTP: one table of endpoints, the runner that handles each, and the map from errors to responses."""
