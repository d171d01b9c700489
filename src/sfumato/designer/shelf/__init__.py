"""Mechanisms with a closed form: recognise a context and choose among its frames and codes."""
