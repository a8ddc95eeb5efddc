"""Labels -> data sets -> trained models and their evaluation. The only package that imports torch at module level."""
