"""Simulations and null studies: what the verdicts and tests say where there is nothing to find."""
