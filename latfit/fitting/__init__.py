"""Stage 5: sample to law."""
