"""A question's way back: shallow, then deep."""
