"""What is in `clients` is run in environments of its own, and imported in none of ours."""

collect_ignore_glob = ["clients/*"]
