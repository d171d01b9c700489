"""The page of a design."""
