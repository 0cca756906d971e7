"""The loop: campaign, cluster, trial, when to stop; what runs left behind; clusters for a person."""
