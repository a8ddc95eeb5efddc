"""Says what a name usually is that no import explains, and which methods tell the type of their object."""

from __future__ import annotations

_MODULES = """
    abc argparse array ast asyncio base64 bisect bz2 collections concurrent contextlib copy csv ctypes dataclasses
    datetime decimal difflib email enum fractions functools gc getpass glob gzip hashlib heapq hmac html http httpx
    inspect io ipaddress itertools json logging lzma math multiprocessing numpy operator os pandas pathlib pickle
    pprint queue random re requests secrets select shlex shutil signal smtplib socket sqlite3 ssl statistics string
    struct subprocess sys tempfile textwrap threading time timeit torch typing unicodedata unittest urllib urllib3
    uuid warnings weakref xml zipfile zlib aiohttp boto3 redis psycopg2 paramiko trio anyio
"""
CONVENTIONAL: dict[str, str] = {
    **{name: name for name in _MODULES.split()},
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "mpl": "matplotlib",
    "sns": "seaborn",
    "tf": "tensorflow",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "sp": "scipy",
    "nx": "networkx",
    "dt": "datetime",
    "tk": "tkinter",
    "mp": "multiprocessing",
    "th": "threading",
    "ET": "xml.etree.ElementTree",
    "osp": "os.path",
    "la": "numpy.linalg",
}
"""Local name -> dotted module."""

ALIASES: dict[str, str] = {
    **dict.fromkeys(("numpy.ndarray", "numpy.typing.NDArray", "numpy.typing.ArrayLike"), "array"),
    "polars.LazyFrame": "polars.DataFrame",
    "pandas.core.frame.DataFrame": "pandas.DataFrame",
    "pandas.core.series.Series": "pandas.Series",
}
"""Type in a hint -> the type that the tables know it by."""
TELLING: dict[str, str] = {
    **dict.fromkeys(
        ("groupby", "iterrows", "itertuples", "set_index", "reset_index", "sort_values", "drop_duplicates", "to_csv",
         "pivot", "pivot_table", "melt", "select_dtypes", "applymap", "to_excel", "to_parquet", "corr", "assign"),
        "pandas.DataFrame",
    ),
    **dict.fromkeys(
        ("value_counts", "isin", "nunique", "isnull", "notnull", "isna", "notna", "fillna", "dropna", "pct_change",
         "rolling", "to_frame", "ewm"),
        "pandas.Series",
    ),
    **dict.fromkeys(("reshape", "ravel", "flatten", "argmax", "argmin", "argsort", "mean", "std"), "array"),
}  # fmt: skip
"""Method -> the type that has it; where several of pandas' types have it, the usual one."""
TELLING_ATTRIBUTES: dict[str, str] = dict.fromkeys(("iloc", "loc", "iat"), "pandas.DataFrame")
_FRAMES = frozenset({"df", "dataframe", "data_frame"})


def usual_type(name: str) -> str | None:
    """Return the type that parameters of a name nearly always have."""
    return "pandas.DataFrame" if name in _FRAMES or name.startswith("df_") or name.endswith("_df") else None
