"""Fixtures for the command."""

from support.command import call, error_from, folder

__all__ = ["call", "error_from", "folder"]
