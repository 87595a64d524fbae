"""HTTP: one table of endpoints, the frame that runs each of them alike, and the map from errors to answers."""
