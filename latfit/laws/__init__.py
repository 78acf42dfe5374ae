"""Stage 4: latency laws, one file each."""
