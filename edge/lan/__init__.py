"""Be found, be trusted."""
