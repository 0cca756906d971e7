"""What the report draws."""
