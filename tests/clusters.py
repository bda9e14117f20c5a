"""Clusters of Ray on this machine, for tests."""

import sys
from contextlib import contextmanager

import pytest

from pipeline_lib.scheduling import cluster

NODE = {"num_cpus": 1, "object_store_memory": 2**27, "include_dashboard": False}


def use(monkeypatch, **variables):
    """Set the variables that ask for Ray to these, and no others."""
    for name in ("ADDRESS", "WORKERS", "CPUS", "GPUS"):
        monkeypatch.delenv(getattr(cluster, name), raising=False)
        if name in variables:
            monkeypatch.setenv(getattr(cluster, name), str(variables[name]))


@contextmanager
def two_nodes(module):
    """Start a cluster of two nodes with one CPU each; yield it and its second node.

    Args:
        module: Name of the test's module, which is sent along: workers cannot import tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in cluster.SETTINGS_OF_RAY.items():
            patch.setenv(variable, value)
        pytest.importorskip("ray", reason="needs the group ray: uv sync --group ray")
        from ray import cloudpickle
        from ray.cluster_utils import Cluster

        cloudpickle.register_pickle_by_value(sys.modules[module])
        started = Cluster(initialize_head=True, head_node_args=NODE)
        yield started, started.add_node(**NODE)
        started.shutdown()
