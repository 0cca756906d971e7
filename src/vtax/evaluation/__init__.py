"""From a stored campaign to its measurements, findings and analysis; interim analyses between two rounds."""
