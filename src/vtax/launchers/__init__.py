"""How a parallel program is started: pure builders of argument vectors."""
