"""Fixtures for the command."""

from support.command import call, folder, refused

__all__ = ["call", "folder", "refused"]
