"""Task state, so that an interrupted agent resumes."""
