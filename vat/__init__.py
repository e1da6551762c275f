"""The runtime: heap, cranks, refs, promises, devices and the host that runs vats."""
