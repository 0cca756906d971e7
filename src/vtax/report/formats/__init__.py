"""The spellings of the document: HTML, Markdown, LaTeX, typst, XLSX."""
