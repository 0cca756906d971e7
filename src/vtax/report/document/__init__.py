"""What the report says: sentences and tables, before they are HTML, Markdown, LaTeX or XLSX."""
