"""Decides what may be remembered; touches no disk."""
