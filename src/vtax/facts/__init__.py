"""What a machine says of itself. A fact is a shell command plus a pure parser; what cannot be observed is absent."""
