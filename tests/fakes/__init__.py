"""What takes the place of machines in tests."""
