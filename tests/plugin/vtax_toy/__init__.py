"""A plug-in: dd as a tool, and the bare host under another name as a provider."""
