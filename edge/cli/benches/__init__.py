"""What the box reaches, each figure beside its ceiling, measured in one run."""
