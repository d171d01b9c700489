"""The page of a plan."""
