"""Fixtures of measurements."""

from virtual import clock as clock
