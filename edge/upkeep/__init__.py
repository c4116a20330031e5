"""What the box does while nobody looks."""
