"""Encoders: pretrained, fine-tuned or randomly initialised models, and the alignment of words with subwords."""
