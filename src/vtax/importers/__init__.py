"""Raw output of benchmarks that other people ran: recognised by what it says, cut into runs, read or refused.

Strict parsers (`vtax.benchmarks`) read what vtax itself ran. Readers here take what people keep: several runs in a
file, ranks mixed line by line, prompts, damaged tables. A value is taken when the text proves it, and refused with
a reason otherwise. Everything but `source` is pure.
"""
