"""Says what a name usually is that no import explains."""

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
