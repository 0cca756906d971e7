"""Tables and metrics for other programs: CSV, JSON Lines, Parquet, XLSX, OpenMetrics, JUnit."""
