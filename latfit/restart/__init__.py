"""Stage 7: law and policy to completion time."""
