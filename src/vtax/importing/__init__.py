"""Other people's logs as a campaign: files, runs in them, the plan they stand for."""
