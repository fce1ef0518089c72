"""`python -m closerlook` is `closerlook`."""

from closerlook.cli import main

main()
