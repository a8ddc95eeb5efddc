"""Labels + source text -> data sets in Parquet. Source text stays in a cache outside the repository."""
