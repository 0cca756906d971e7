"""One file of a campaign, to be passed on: what goes in, what another machine can check, what is taken out first."""
