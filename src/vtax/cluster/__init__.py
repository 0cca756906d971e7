"""What makes nodes a cluster: keys, names, SSH configuration, readiness."""
