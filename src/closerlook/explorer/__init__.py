"""The explorer: a page on which the points of a space can be seen, searched, selected and followed over a training."""

from closerlook.explorer.explorer import Explorer, explore

__all__ = ["Explorer", "explore"]
