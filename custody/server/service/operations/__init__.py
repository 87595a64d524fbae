"""What an operator and the load balancer ask of the platform: whether it works, and what waits."""
