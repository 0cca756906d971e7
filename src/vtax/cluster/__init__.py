"""What makes nodes a cluster: keys, names, SSH configuration, readiness, and the proof that it is as planned."""
