"""The same predictions as tools for coding agents, over the Model Context Protocol; needs the [mcp] extra."""
