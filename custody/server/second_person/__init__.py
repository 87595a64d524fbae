"""Two people for policy: the rule, the changes that wait for a second person, and who confirms them."""
