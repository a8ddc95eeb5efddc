"""What is asked about a unit: devices and their data sheets, sizes and workloads, and the query as numbers."""
