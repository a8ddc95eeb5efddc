"""The page of ``rlm-lsp report``: measured next to predicted costs in one HTML file that loads nothing."""
