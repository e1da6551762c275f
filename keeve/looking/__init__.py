"""What the commands tell of a store, in JSON, wherever the store is: `look` has one of `LOOKS` done in a `Reading`.

Of files it is done where the command runs, of a server's store at the server (`reading_of`), by the same functions: so
both say the same. Saying it in words is `keeve.cli`'s. What became of an input is looked at by all of them as `Input`.
"""

from keeve.looking.asking import end_turn, must_state_turns, outcome, status_of
from keeve.looking.doing import SeveralWait, resolve, say_word, waiting_calls
from keeve.looking.inputs import Input, taken_face
from keeve.looking.looks import LOOKS, NoSuchLook, held_face, look
from keeve.looking.pages import NoMessages, chain_of, messages_of
from keeve.looking.parts import AT_ONCE, PAGE, ROOM, Room, page_of, part_of, rows_of, some_of, weight
from keeve.looking.proofs import record_said, told_checkpoint, words_of
from keeve.looking.reading import Reading, reading_of
from keeve.looking.refs import actor_behind, ref_in_words, with_refs
from keeve.looking.sessions import CONVERSATION
from keeve.looking.spans import TurnSpans
from keeve.looking.state import FieldPlace, FieldsPage, fields_of, parts_put_together, put_together
from keeve.looking.stating import StatesNoTurns, states_turns
from keeve.looking.waiting import UnreadSession, Waits, approval_face, due, effect_face, since
from keeve.looking.waitlist import BEHIND, KINDS, all_waits, in_order, order_in, page_in_order, written

__all__ = [
    "AT_ONCE",
    "BEHIND",
    "CONVERSATION",
    "KINDS",
    "LOOKS",
    "PAGE",
    "ROOM",
    "FieldPlace",
    "FieldsPage",
    "Input",
    "NoMessages",
    "NoSuchLook",
    "Reading",
    "Room",
    "SeveralWait",
    "StatesNoTurns",
    "TurnSpans",
    "UnreadSession",
    "Waits",
    "actor_behind",
    "all_waits",
    "approval_face",
    "chain_of",
    "due",
    "effect_face",
    "end_turn",
    "fields_of",
    "held_face",
    "in_order",
    "look",
    "messages_of",
    "must_state_turns",
    "order_in",
    "outcome",
    "page_in_order",
    "page_of",
    "part_of",
    "parts_put_together",
    "put_together",
    "reading_of",
    "record_said",
    "ref_in_words",
    "resolve",
    "rows_of",
    "say_word",
    "since",
    "some_of",
    "states_turns",
    "status_of",
    "taken_face",
    "told_checkpoint",
    "waiting_calls",
    "weight",
    "with_refs",
    "words_of",
    "written",
]
