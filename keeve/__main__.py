"""`python -m keeve` is the command `keeve`.

The one rule: nothing is done here.
"""

from keeve.cli import main

if __name__ == "__main__":
    main()
