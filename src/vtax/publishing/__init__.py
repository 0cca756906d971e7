"""The report as files, as a PDF, and in a browser: the input and output around `report`."""
