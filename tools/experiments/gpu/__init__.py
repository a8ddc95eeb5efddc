"""Measurements on a GPU: ``run.sh`` runs it all on a GPU machine without network."""
