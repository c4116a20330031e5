"""Assistants' configuration files: where each is, what goes into it, and how nothing else of it changes."""
