"""The shown points of an explorer as a table: one row for each point, layer and snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from closerlook.explorer.explorer import Explorer


def points_table(explorer: Explorer) -> pd.DataFrame:
    """The columns: layer, snapshot, row, split, word, text, label, cluster, cluster_label, right, moved, x, y.

    row: in the whole train or test split. cluster: of a train point its own, of a test point the nearest one.
    right: whether the cluster has the point's label. moved: in RMS radii, since the first snapshot. x, y: position in
    the PCA view.
    """
    import pandas as pd

    scatter = explorer.scatter
    context = scatter.context
    fixed = {
        "row": scatter.row_numbers,
        "split": np.where(scatter.is_test, "test", "train"),
        "word": explorer.words if explorer.words is not None else "",
        "text": "" if context is None else [context.texts[at] for at in context.text],
        "label": explorer.labels,
    }
    parts = []
    for layer in explorer.layers:
        for at, (snapshot, measured) in enumerate(zip(explorer.snapshots, layer.measured, strict=True)):
            nearest = measured.nearest[explorer.rows]
            parts.append(
                pd.DataFrame(
                    {
                        "layer": layer.number,
                        "snapshot": snapshot,
                        **fixed,
                        "cluster": nearest,
                        "cluster_label": measured.labels[nearest],
                        "right": ~measured.wrong[explorer.rows],
                        "moved": layer.moved[at],
                        "x": layer.pca.xy[at, :, 0],
                        "y": layer.pca.xy[at, :, 1],
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)
