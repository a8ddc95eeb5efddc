"""A real Ray cluster of two nodes on this machine, each with one CPU, for all tests of a module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from rlm_core.serving import ray_cluster

from tests.paths import REPOSITORY

pytestmark = pytest.mark.extras

STORE = 80 << 20


class Nodes:
    """The cluster: its address, and its second node, which may be lost and comes back when it is asked for."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        options = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=options)
        self.address: str = self._cluster.address
        self._second: Any = None

    def two(self) -> str:
        """See that there are two nodes; their address."""
        if self._second is None:
            self._second = self._cluster.add_node(num_cpus=1, object_store_memory=STORE)
            self._cluster.wait_for_nodes(timeout=60)
        return self.address

    def lose(self) -> None:
        """Kill the second node with its workers."""
        self._cluster.remove_node(self._second, allow_graceful=False)
        self._second = None

    @contextmanager
    def gpu(self, kind: str) -> Iterator[str]:
        """A third node that says it has a GPU of a kind; its id. What runs there must not need the GPU."""
        kinds = {f"accelerator_type:{kind}": 1}
        node = self._cluster.add_node(num_cpus=1, num_gpus=1, resources=kinds, object_store_memory=STORE)
        self._cluster.wait_for_nodes(timeout=60)
        yield node.node_id
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        """End all processes."""
        self._cluster.shutdown()


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """The nodes; their workers find the tests' own functions."""
    with pytest.MonkeyPatch.context() as patch:
        found = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(found))
        # What pytest finds beside these tests is not what nodes measure.
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        # What is lost is to be seen soon.
        patch.setenv("RAY_health_check_period_ms", "500")
        patch.setenv("RAY_health_check_failure_threshold", "3")
        # A command starts a process that sees whether a cluster answers; for this one the first answer is enough.
        patch.setattr(ray_cluster, "_probe", cache(ray_cluster._probe))
        nodes = Nodes()
        yield nodes
        nodes.close()


@pytest.fixture
def address(nodes: Nodes) -> str:
    """The address of two nodes."""
    return nodes.two()
