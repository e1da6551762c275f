"""What is said, how it is kept, and how it is found: values, records, the log, observers."""
