"""Are the packages beneath us ours?

`actors`, `vat`, `snapshots` and `dataspace` are common words: a file of that name in the folder where Python
was started, or in another distribution, would be imported in place of ours and fail much later, as something
else. So `import keeve` asks first. The one rule: the packages stand beside each other, in a checkout as in
an installation, so each must be found where `keeve` is. A package that is not ours is never run.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

NAMES = ("dataspace", "snapshots", "vat", "actors")


class HiddenPackage(ImportError):
    """Something else has the name of one of our packages and comes first on the import path.

    `name` is that of the package, `path` the file or folder that hides ours (`None`: nothing has that name).
    """


def check(names: tuple[str, ...] = NAMES) -> None:
    """Raise `HiddenPackage` unless each of these packages is the one beside `keeve`. Takes about 0.1 ms."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in names:
        found = _place(name)
        ours = os.path.join(home, name, "__init__.py")
        if found != ours and not _same(found, ours):
            raise HiddenPackage(_explain(name, found, ours), name=name, path=found)


def _place(name: str) -> str | None:
    """The file or folder that `import name` would take, or has taken."""
    loaded = sys.modules.get(name)
    spec: ModuleSpec | None
    try:
        spec = find_spec(name)
    except ValueError:  # a module that was put into sys.modules by hand has no spec
        return getattr(loaded, "__file__", None) or f"a module made in memory: {loaded!r}"
    if spec is None:
        return None
    if spec.has_location and spec.origin:
        return os.path.abspath(spec.origin)
    folders = list(spec.submodule_search_locations or ())
    return folders[0] if folders else str(spec.origin)


def _same(found: str | None, ours: str) -> bool:
    return found is not None and os.path.realpath(found) == os.path.realpath(ours)


def _explain(name: str, found: str | None, ours: str) -> str:
    if found is None:
        return f"keeve needs its package {name!r}, which should be at {ours} and is not: install keeve again"
    verb = "was imported before keeve" if name in sys.modules else "comes first on the import path"
    return (
        f"{found} hides keeve's package {name!r}, which is at {ours}: it has the same name and {verb}. "
        "Rename it, start Python in another folder, or uninstall the distribution that it belongs to"
    )
