"""Who is asked: encoders from the hub, a folder or chance, and words aligned with their subwords."""
