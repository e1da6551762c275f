"""How it is heard: queries and observers, past and live with one primitive.

`dataspace` is what is asked, `observation` one observer's loop, `events` what both give, `cursor` how far somebody
has read, `holding` one reading of what holds. Behind them: `search` (where in the log to look), `waiting` over the
index in `interest` (who wants to hear what), `narrow` (what a reader may see) and `places` (how a place in the log is
named).

`words` is what a record says, as a text for others.

`cursor`, `dataspace`, `events`, `holding`, `observation`, `places` and `words` are public, the others are private to
the package.
"""

__all__ = [
    "cursor",
    "dataspace",
    "events",
    "holding",
    "observation",
    "places",
    "words",
]
