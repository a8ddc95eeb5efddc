"""The commands of ``rlm-lsp``: one module per command, imported only when the command is called."""
