"""Pods of a Kubernetes cluster as nodes: from the same root file system, one on each machine that the study names."""
