"""How it is kept: frames, recovery, files, and the stores built on them."""
