"""Says about the interpreter what the program has to know: where it is, what it reads, and which libraries it has."""

import json
import os
import sys
import sysconfig
from importlib import metadata

try:
    from zoneinfo import TZPATH
except ImportError:
    TZPATH = ()

paths = sysconfig.get_paths()
read = [*sys.path, paths["stdlib"], paths["platstdlib"], *TZPATH]
for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix}:
    read += [os.path.join(prefix, name) for name in ("lib", "lib64", "pyvenv.cfg")]
execute = [sys.executable]
try:
    with open("/proc/self/maps") as maps:
        mapped = {line.split(None, 5)[5].strip() for line in maps if "/" in line and ".so" in line}
    read += [os.path.dirname(path) for path in mapped]
    execute += [path for path in mapped if os.path.basename(path).startswith("ld-")]
except OSError:
    pass
names = {str(library.metadata["Name"]) for library in metadata.distributions()}
print(
    json.dumps(
        {
            "program": sys.executable,
            "version": sys.version.split()[0],
            "libraries": sorted(names - {"pip", "setuptools", "wheel", "None"}, key=str.lower),
            "read": sorted({path for path in read if os.path.isabs(path) and os.path.exists(path)}),
            "execute": execute,
        }
    )
)
