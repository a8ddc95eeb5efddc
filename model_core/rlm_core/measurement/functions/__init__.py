"""Functions of a package, timed while its tests run.

``run`` starts pytest with ``injected/rlm_probe`` in its processes, once for latency and once for memory; ``recordings``
reads the samples that they write; ``collect`` turns them into measurements. ``pytest_plugin`` is ``pytest --rlm``;
``cluster`` spreads the test files over the nodes of a Ray cluster.
"""
