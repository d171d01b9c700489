"""The command: one file per sub-command."""
