"""The language server: documents, predictions while the user types, and one module per LSP feature."""
