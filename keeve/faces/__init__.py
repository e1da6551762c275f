"""What the command line and the server give of a store in JSON: `face` of any value (and `value_of` a face),
`event_face`, `session_face`, `utc_time` of a `date_of`; of the fields of an actor (`fields_face`, of some of them
`public_fields`, `field_face`, `item_face`, or piece by piece `items_of`, `joined`); and the turns of a session, put
together from what it has stated (`turns_of`, which gives `Turn`s; `tell`, `TELLING`, `ENDS`). `docs/json.md` has the
fields.
"""

from keeve.faces.fields import field_face, fields_face, item_face, items_of, joined, public_fields
from keeve.faces.turns import ENDS, TELLING, Turn, tell, turns_of
from keeve.faces.values import date_of, event_face, face, fork_face, session_face, utc_time, value_of

__all__ = [
    "ENDS",
    "TELLING",
    "Turn",
    "date_of",
    "event_face",
    "face",
    "field_face",
    "fields_face",
    "fork_face",
    "item_face",
    "items_of",
    "joined",
    "public_fields",
    "session_face",
    "tell",
    "turns_of",
    "utc_time",
    "value_of",
]
