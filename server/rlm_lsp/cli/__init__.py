"""The commands of ``rlm-lsp``, a module each; ``cli`` imports one only when it is called."""
