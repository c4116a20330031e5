"""Text to vectors, as fast as the heat allows."""
