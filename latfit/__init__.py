"""latfit."""
