"""The vectors: spaces, how they are extracted, and where they are kept."""
