"""Queries about units: devices and their data sheets, sizes and workloads, and the query as numbers."""
