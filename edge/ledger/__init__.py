"""What was said, never altered; what we made of it."""
