"""`python -m vtax.cli` is `vtax`."""

from vtax.cli.main import main

main()
