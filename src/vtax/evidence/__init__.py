"""What the audit looks at, and how a row is declared. Pure."""
