"""Made-up campaigns, measurements and logs for tests."""
