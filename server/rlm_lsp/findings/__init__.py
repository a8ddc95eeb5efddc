"""What ``rlm-lsp check`` does: ``files`` says which files, ``pipeline`` reads, asks and reports them in batches."""
