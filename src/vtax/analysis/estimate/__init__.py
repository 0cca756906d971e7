"""Effects, intervals and tests over rounds: pure functions on arrays, and what feeds them."""
