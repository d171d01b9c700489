"""Where chance comes from, and how words become exact odds."""
