"""``rlm-lsp report``: measured beside predicted as one HTML file that loads nothing.

``figures`` makes charts (plotly), ``treemap`` the one of costs by module, ``page`` the file around them.
"""
