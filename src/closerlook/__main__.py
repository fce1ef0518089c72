"""`python -m closerlook` runs the command line."""

from closerlook.cli import main

main()
