"""Eighty-four days of one household's talk with its assistants, and six questions that it must answer."""
