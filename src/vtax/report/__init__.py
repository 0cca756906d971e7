"""The report of a campaign as text and bytes: nothing here reads or writes a file.

ReportInput -> document (what is said, as tables of typed cells) -> formats (a file each, which spells it)
            -> figures (drawn from the same input)
"""
