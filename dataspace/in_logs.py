"""Errors in the lines of logs: what one is, what it says, and where it came from.

Content is in no log. What an error of ours says may quote some, unless its class says that it never does
(`KeeveError.quotes`); what an error of others says, its author decides.

The one rule: a line that tells of an error has it from `in_log`, and a trace is of what `traced` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dataspace.errors import KeeveError
from dataspace.interrupts import is_interrupt


def in_log(error: BaseException) -> str:
    """An error in a line of a log: its class, and what it says, of ours only what quotes nothing."""
    name = _name(error)
    said = error.logged if isinstance(error, KeeveError) else message_of(error)
    return name if said in ("", name) else f"{name}: {said}"


def traced(error: BaseException) -> BaseException:
    """An error as a trace may show it, with those that led to it: itself, or a twin where one of them quotes something.

    A twin has its name, its place in the code and its notes, and says what a line of a log has of it.
    """
    return _twin(error, {}) if any(map(_quotes, _with_causes(error))) else error


def message_of(error: BaseException) -> str:
    """What an error says, whatever it is."""
    # KeyError's own text is the repr of its argument, which would be quoted again on the way back.
    try:
        lone = error.args[0] if isinstance(error, KeyError) and len(error.args) == 1 else None
        if isinstance(lone, str) and type(error).__str__ is KeyError.__str__:
            return lone
        return str(error)
    except BaseException as unshowable:  # a message is the users' code
        if is_interrupt(unshowable):
            raise
        return f"(its message cannot be shown: {type(unshowable).__name__})"


def _name(error: BaseException) -> str:
    return error.named if isinstance(error, KeeveError) else type(error).__name__


def _quotes(error: BaseException) -> bool:
    return isinstance(error, KeeveError) and error.logged != message_of(error)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """An error and all that a trace of it shows."""
    todo, seen = [error], set()
    for each in todo:
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            todo += [led for led in (each.__cause__, each.__context__) if led is not None]
            todo += _inside(each)


def _twin(error: BaseException, twins: dict[int, BaseException]) -> BaseException:
    """What stands for an error in a trace; `twins` are those of errors that were met before."""
    if id(error) in twins:
        return twins[id(error)]
    twin: BaseException
    if isinstance(error, BaseExceptionGroup):
        said = BaseExceptionGroup.message.__get__(error)  # as `_inside`
        twin = BaseExceptionGroup(said, [_twin(each, twins) for each in _inside(error)])
    else:
        name = _name(error)
        said = in_log(error).removeprefix(name).removeprefix(": ")
        kind = "".join(filter(str.isprintable, name))
        twin = type(kind, (Exception,), {"__module__": type(error).__module__})(*([said] if said else []))
    twins[id(error)] = twin
    twin.__traceback__ = error.__traceback__
    twin.__cause__, twin.__context__ = (
        None if led is None else _twin(led, twins) for led in (error.__cause__, error.__context__)
    )
    twin.__suppress_context__ = error.__suppress_context__
    notes = getattr(error, "__notes__", None)
    for note in notes if isinstance(notes, list) else ():
        if isinstance(note, str):
            twin.add_note(note)
    return twin


def _inside(error: BaseException) -> Sequence[BaseException]:
    found: Sequence[BaseException] = ()
    if isinstance(error, BaseExceptionGroup):
        found = BaseExceptionGroup.exceptions.__get__(error)  # whatever its class makes of that
    return found
