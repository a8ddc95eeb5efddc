"""Labels + source text -> data sets in Parquet. Labels are facts; source text stays in a cache outside the repository."""
