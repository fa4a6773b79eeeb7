# SPDX-License-Identifier: MIT
"""The arrays of a graph: what Graph() makes of others, and what is put in their place later."""

from __future__ import annotations

import numpy as np
import pytest

import gnnd

ml_dtypes = pytest.importorskip("ml_dtypes")


def test_arrays_of_a_graph_are_checked(x):
    graph = gnnd.build(x, k=5)
    for ids, distances, metric, error, text in (
        (graph.ids[0], graph.distances, "l2", ValueError, "1 dimensions"),
        (graph.ids, graph.distances[:, :4], "l2", ValueError, "shape"),
        (graph.ids.astype(float), graph.distances, "l2", TypeError, "whole numbers"),
        (graph.ids.astype(np.int64) << 32, graph.distances, "l2", ValueError, "2,147,483,647"),
        (graph.ids, graph.distances, "euclid", ValueError, "euclid"),
        (np.ma.masked_array(graph.ids), graph.distances, "l2", TypeError, "ids are a masked array"),
        (graph.ids, np.ma.masked_array(graph.distances), "l2", TypeError, "distances are a masked array"),
        (graph.ids, graph.distances * 1j, "l2", TypeError, "distances are of complex64"),
        (graph.ids, graph.distances.astype(str), "l2", TypeError, "distances are of <U"),
        (graph.ids, graph.distances.astype(object), "l2", TypeError, "distances are of object"),
        (graph.ids, graph.distances > 1, "l2", TypeError, "distances are of bool"),
        (graph.ids > 1, graph.distances, "l2", TypeError, "whole numbers"),
        (graph.ids, graph.distances.astype(float) * 1e99, "l2", ValueError, "beyond what float32 holds"),
        (graph.ids, None, "l2", TypeError, "distances are of object"),
    ):
        with pytest.raises(error, match=text):
            gnnd.Graph(ids, distances, metric)
    graph.ids = graph.ids[:, ::2]
    graph.distances = graph.distances[:, ::2]
    with pytest.raises(ValueError, match="contiguous"):
        gnnd.refine(x, graph)


@pytest.mark.parametrize("change", [list, lambda a: a.tolist(), lambda a: a.astype(a.dtype.newbyteorder(">"))])
def test_a_graph_is_made_of_whatever_holds_its_numbers(x, change):
    graph = gnnd.build(x, k=5)
    made = gnnd.Graph(change(graph.ids), change(graph.distances))
    np.testing.assert_array_equal(made.ids, graph.ids)
    np.testing.assert_array_equal(made.distances, graph.distances)
    assert gnnd.Graph(graph.ids.astype(np.uint64), graph.distances.astype(ml_dtypes.bfloat16)).distances.dtype == "f4"


@pytest.mark.parametrize(
    "name, change",
    [
        ("ids", lambda a: a.astype(np.int64)),
        ("ids", lambda a: a.astype(">i4")),
        ("ids", lambda a: a.view(np.float32)),
        ("ids", lambda a: a.view(np.uint32)),
        ("ids", lambda a: a.tolist()),
        ("ids", lambda a: a[0]),
        ("ids", lambda a: a.T),
        ("ids", lambda a: a[:50]),
        ("ids", np.ma.masked_array),
        ("distances", lambda a: a.astype(np.float64)),
        ("distances", lambda a: a.astype(">f4")),
        ("distances", lambda a: a.view(np.int32)),
        ("distances", lambda a: a * 1j),
        ("distances", lambda a: None),
    ],
)
def test_arrays_that_are_put_into_a_graph_are_never_taken_for_others(x, tmp_path, name, change):
    made = gnnd.build(x, k=5)
    setattr(made, name, change(getattr(made, name)))
    for call in (
        lambda: gnnd.eval(made, x),
        lambda: gnnd.refine(x, made),
        lambda: gnnd.append(x, made, x[:5]),
        lambda: gnnd.graph.symmetric_graph(made),
        lambda: gnnd.graph.search_links(x, made),
        lambda: made.save(tmp_path / "graph"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"{name} (of a graph must stay|are)|contiguous"):
            call()
