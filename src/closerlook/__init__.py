"""Closer Look: how fine-tuning changes the representation space of a language encoder."""
