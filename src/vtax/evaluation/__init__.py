"""From what a campaign stored to what it says: measurements, findings, analysis; also between two rounds."""
