"""Other people's logs as a campaign: files, the runs in them, the plan that describes them."""
