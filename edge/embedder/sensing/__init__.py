"""One file a kind of sensor: where it is found on this system, and what it means."""
