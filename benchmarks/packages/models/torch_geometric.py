"""torch_geometric: networks on graphs, with nodes and edges dynamic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch_geometric import nn

from packages.case import Case

_SIZES = {"nodes": (10, 6, 25), "edges": (30, 12, 80)}
_AXES = ({0: "nodes"}, {1: "edges"})


def cases() -> list[Case]:
    """Node classifiers, graph classifiers, links, point clouds."""
    return [
        *(
            _nodes(name, lambda kind=kind, more=more: getattr(nn.models, kind)(8, 16, 2, 3, **more))
            for name, kind, more in (
                ("gcn", "GCN", {}),
                ("sage", "GraphSAGE", {}),
                ("gat", "GAT", {"heads": 2}),
                ("gin", "GIN", {}),
                ("gatv2", "GAT", {"v2": True, "heads": 2}),
                (
                    "pna",
                    "PNA",
                    {"aggregators": ["mean", "max", "std"], "scalers": ["identity"], "deg": torch.tensor([0, 3, 4, 3])},
                ),
                ("edge-cnn", "EdgeCNN", {}),
                ("sage-max", "GraphSAGE", {"aggr": "max", "jk": "cat"}),
            )
        ),
        _nodes(
            "transformer-conv",
            lambda: nn.Sequential(
                "x, edge_index",
                [
                    (nn.TransformerConv(8, 8, heads=2), "x, edge_index -> x"),
                    torch.nn.ReLU(),
                    (nn.TransformerConv(16, 3), "x, edge_index -> x"),
                ],
            ),
        ),
        _nodes("cheb", lambda: nn.ChebConv(8, 3, K=3)),
        _nodes("sgc", lambda: nn.SGConv(8, 3, K=2)),
        _nodes(
            "appnp",
            lambda: nn.Sequential(
                "x, edge_index", [(torch.nn.Linear(8, 3), "x -> x"), (nn.APPNP(3, 0.1), "x, edge_index -> x")]
            ),
        ),
        Case(
            "gcn-weighted",
            lambda: nn.GCNConv(8, 3),
            lambda nodes, edges: (*_graph(nodes, edges), torch.rand(edges)),
            (*_AXES, {0: "edges"}),
            _SIZES,
        ),
        Case(
            "gine",
            _edge_features,
            lambda nodes, edges: (*_graph(nodes, edges), torch.randn(edges, 4)),
            (*_AXES, {0: "edges"}),
            _SIZES,
        ),
        Case(
            "rgcn",
            lambda: nn.RGCNConv(8, 3, num_relations=3),
            lambda nodes, edges: (*_graph(nodes, edges), torch.randint(0, 3, (edges,))),
            (*_AXES, {0: "edges"}),
            _SIZES,
        ),
        *(
            Case(f"graph-{kind}", lambda kind=kind: _GraphClassifier(kind), _batched, (*_AXES, {0: "nodes"}), _SIZES)
            for kind in ("mean", "max", "attention")
        ),
        Case("top-k-pooling", _Pooling, _batched, (*_AXES, {0: "nodes"}), _SIZES),
        Case(
            "links",
            _Links,
            lambda nodes, edges, pairs: (*_graph(nodes, edges), torch.randint(0, nodes, (2, pairs))),
            (*_AXES, {1: "pairs"}),
            {**_SIZES, "pairs": (5, 3, 9)},
        ),
        Case(
            "schnet",
            lambda: nn.SchNet(
                hidden_channels=16,
                num_filters=16,
                num_interactions=2,
                num_gaussians=8,
                cutoff=10.0,
                interaction_graph=_AllPairs(),
            ),
            lambda nodes: (torch.randint(1, 9, (nodes,)), torch.randn(nodes, 3)),
            ({0: "nodes"}, {0: "nodes"}),
            {"nodes": (6, 4, 9)},
        ),
    ]


def _graph(nodes: int, edges: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(nodes, 8), torch.randint(0, nodes, (2, edges))


def _batched(nodes: int, edges: int) -> tuple[torch.Tensor, ...]:
    """Three graphs in one."""
    batch = torch.arange(nodes) * 3 // nodes
    return (*_graph(nodes, edges), batch)


def _nodes(name: str, build: Callable[[], torch.nn.Module]) -> Case:
    return Case(name, build, _graph, _AXES, _SIZES)


def _edge_features() -> torch.nn.Module:
    return nn.GINEConv(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)), edge_dim=4)


class _GraphClassifier(torch.nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.body = nn.GCN(8, 16, 2)
        gate = torch.nn.Linear(16, 1)
        self.pool: Any = nn.AttentionalAggregation(gate) if kind == "attention" else getattr(nn, f"global_{kind}_pool")
        self.head = torch.nn.Linear(16, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(self.pool(self.body(x, edge_index), batch))
        return found


class _Pooling(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.pool, self.head = nn.GraphConv(8, 16), nn.TopKPooling(16, 0.5), torch.nn.Linear(16, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        x, edge_index, _, batch, _, _ = self.pool(self.first(x, edge_index).relu(), edge_index, None, batch)
        found: torch.Tensor = self.head(nn.global_mean_pool(x, batch))
        return found


class _Links(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.GraphSAGE(8, 16, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        z = self.encoder(x, edge_index)
        return (z[pairs[0]] * z[pairs[1]]).sum(-1).sigmoid()


class _AllPairs(torch.nn.Module):
    """Edges between all atoms: what SchNet is given instead of a search within a radius, which needs torch-cluster."""

    def forward(self, positions: torch.Tensor, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        count = positions.shape[0]
        found = (1 - torch.eye(count, dtype=torch.long)).nonzero().t()
        return found, (positions[found[0]] - positions[found[1]]).norm(dim=-1)
