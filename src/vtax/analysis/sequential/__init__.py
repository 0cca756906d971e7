"""When a campaign may stop without harm to its error rate: planned looks, anytime-valid intervals, forecasts."""
