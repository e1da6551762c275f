"""What runs in vats: the session, models and tools, the directory."""
