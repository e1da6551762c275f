"""What stands in a record's operations: the opcodes with their arguments, and where outcomes go.

The one rule: **numbers are for ever**, and so are the arguments behind them; what is new gets a new number.
"""

from __future__ import annotations

from enum import IntEnum


class Op(IntEnum):
    """Opcodes. An operation is `[opcode, arguments…]`."""

    BEGIN = 0
    """actor, method, args, keywords, failure: a delivery begins; args only where the message does not say them,
    keywords and the failure that a reaction is told of only if there are any"""
    FAILED = 1
    """failure: the delivery that began last was undone"""
    SET = 2
    """actor, field, value"""
    CHANGE = 3
    """actor, field, verb, args…: a collection changes"""
    SPAWNED = 4
    """actor, type, version, fields"""
    UPGRADED = 5
    """actor, version, fields that are kept (by their new names), other fields"""
    COLLECTED = 6
    """actors, promises: nothing reached them"""
    COUNTED = 7
    """counter, number: given, and undone with who asked for it"""
    MADE = 8
    """promise, settler"""
    HELD = 9
    """promise: something in the heap refers to it"""
    FOLLOWS = 10
    """promise, other"""
    REACTS = 11
    """promise, reaction"""
    FULFILLED = 12
    """promise, value"""
    BROKE = 13
    """promise, failure"""
    SENT = 14
    """number, uid, message: to another vat"""
    RECEIVED = 15
    """uid, number: the message's"""
    ACKED = 16
    """numbers of messages that their receivers have"""
    WANTED = 17
    """number, id, device, method, args, keywords, views, promise: an effect"""
    STARTED = 18
    """number of an effect that is about to be carried out"""
    ENDED = 19
    """number of an effect that has its outcome"""
    ASKED = 20
    """request key, digest of the content, promise"""
    ANSWERED = 21
    """request key, digest of the content, whether it succeeded, value or failure"""
    STATED = 22
    """whether it may be retracted (0 no, 1 yes, 2 presence), and then seq and operation: a fact, which stands in the
    facts"""
    RETRACTED = 23
    """seq, operation"""
    HANDED = 24
    """actor: a ref to it left the vat"""
    NARROWED = 25
    """facet, target, methods, read only"""
    REVOKED = 26
    """facet"""
    SUBSCRIBED = 27
    """number, pattern, actor, method, cursor"""
    OBSERVED = 28
    """number, cursor"""
    UNSUBSCRIBED = 29
    """number"""
    VIEWED = 30
    """actor, field: a view, numbered within the record"""
    SEEDED = 31
    """bytes that the crank's randomness comes from"""
    DETACHED = 32
    """seq: a fork lets go of what belongs to its parent"""
    PASSED = 33
    """promise, other: what waits for the one waits for the other from now on; the one is gone"""
    UNDONE = 34
    """actor, method, failure: a near call raised and was undone"""
    SUSPENDED = 35
    """fiber, seq and operation with which the part began that ends here, what it waits for (a mode, and promises),
    promises that are kept for it, promises that are kept no more; and for a new fiber actor, method, version of the
    type, promise for the result"""
    RESUMED = 36
    """fiber, seq and operation with which its last part began, and the failure that it is told of in place of what it
    waited for, if there is one: its next part begins"""
    RETURNED = 37
    """fiber, promises that are kept for it no more: it is over"""
    CALLED = 38
    """actor, method, args, keywords: a near call of an async method"""
    CLOCKED = 39
    """the clock, which is behind the record's time: a deadline that follows was reckoned from it"""
    LOOKED = 40
    """effect, whether its device may have been given it: asked for while no record says that it has started"""


class Verb(IntEnum):
    """What `CHANGE` does to a collection."""

    APPEND = 0
    EXTEND = 1
    INSERT = 2
    REPLACE = 3
    DELETE = 4
    CLEAR = 5
    PUT = 6
    REMOVE = 7
    ADD = 8
    DISCARD = 9


class To:
    """Where the outcome of a promise or a delivery goes: a *reaction*, `[kind, …]`. Numbers are for ever."""

    THEN = 0
    """actor and method for a value, actor and method for a failure, args, keywords, promise for what they return"""
    FOLLOW = 1
    """promise"""
    ANSWER = 2
    """request key, digest"""
    REPLY = 3
    """uid, promise of that vat"""
    RESEND = 4
    """ref, method, args, keywords, promise"""
    OUTSIDE = 5
    """the caller of this message; never kept"""
    FIBER = 6
    """fiber: it waits for this"""
