"""Survey files in TOML, and the files they refer to."""
