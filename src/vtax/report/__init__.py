"""The report of a campaign as text: nothing here reads or writes a file.

ReportInput -> page (what is said, as tables of cells) -> html, markdown;  figures -> SVG
"""
