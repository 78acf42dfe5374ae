"""Stage 2: read a log of any known format into one table, and into samples."""
