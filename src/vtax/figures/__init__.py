"""Figures: each described once as data, marks and axes, and rendered for the page, for paper and for the terminal."""
