"""HTTP: a route of each declared call, the map from errors to responses, and the server that listens."""
