"""vtax: what does virtualization cost, on this hardware, for this work?"""

__version__ = "0.1.0"
