"""What a training changed: two encoders measured on the same examples, layer by layer, label by label."""

from closerlook.differences.difference import Difference
from closerlook.differences.measuring import diff

__all__ = ["Difference", "diff"]
