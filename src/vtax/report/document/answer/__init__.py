"""What a report says first, by rule from verdicts and findings: `model` has its parts, `compose` puts them together.

Answer  headline, subject -> lines (one for a resource and environment) -> what would decide
        -> limits (each condition once) -> emulated environments -> the same lines against other environments
"""
