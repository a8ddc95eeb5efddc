"""Functions of a package, timed while its tests or an application run, and called again with larger inputs.

``run`` starts pytest with ``injected/rlm_probe`` in its processes, once for latency and once for memory; ``recordings``
reads the samples that they write; ``collect`` turns them into measurements. ``scaling`` calls functions with larger
inputs afterwards. ``pytest_plugin`` is ``pytest --rlm``; ``cluster`` spreads the test files over the nodes of a Ray
cluster.
"""
