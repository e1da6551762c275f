"""For the tests of those who build on Keeve.

`folder_for_stores` makes a folder whose stores a test run may open (see `vat.guard`); as a pytest fixture,
`store_folder`, it is in `keeve.testing.plugin`.
"""

from __future__ import annotations

from keeve.testing.folders import folder_for_stores

__all__ = ["folder_for_stores"]
