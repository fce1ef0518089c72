"""Spaces (labelled vectors): how they are extracted, saved in files and kept in the store."""
