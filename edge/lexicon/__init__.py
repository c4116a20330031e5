"""Words of Chinese and English, for the keyword side."""
