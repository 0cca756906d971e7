"""Two campaigns against each other: what changed, what is missing, what was set up differently."""
