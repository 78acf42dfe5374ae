"""A real service on loopback that slows down and heals, and clients that set their timeouts in several ways."""
