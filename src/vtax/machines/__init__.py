"""Machines that are not this one: how they are reached, what vtax sends there, and what it asks them.

A machine runs vtax's own code. vtax sends itself once, starts that as an agent over one SSH connection, and asks it in
lines of JSON. So providers, facts and counters are the same code on every machine, and what is measured there is
measured there: no round trip of SSH is a part of a result.
"""
