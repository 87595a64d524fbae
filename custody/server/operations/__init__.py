"""For operators and load balancers: readiness, status and jobs."""
