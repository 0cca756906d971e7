"""What the report says, without any markup: `model` has its parts, `compose` puts them together once for a command."""
