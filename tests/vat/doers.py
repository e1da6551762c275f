"""An actor that does what a list of steps says: `[["append", 1], ["send", 0, [["fail"]], true], ...]`."""

from __future__ import annotations

from typing import Any

from dataspace.errors import KeeveError
from dataspace.values import Text
from vat.heap.refs import Promise, cancel, near
from vat.objects.actor import Actor, Device, actor
from vat.objects.collections import List, Map, Set
from vat.objects.types import read
from vat.objects.waiting import gather, within

LONG = "content " * 60
CANARY = "canary " * 60


@actor("restored.doer", version=1)
class Doer(Actor):
    value: Any = None
    text: Text = Text("")
    count: int = 0
    items: List[Any]
    named: Map[Any, Any]
    tags: Set[Any]
    refs: List[Any]
    promises: List[Any]
    handles: List[Any]
    model: Device = "model"

    def do(self, steps: Any) -> Any:
        result = None
        for step in steps:
            result = getattr(self, f"_{step[0]}")(*step[1:])
        return result

    def meet(self, ref: Any) -> None:
        self.refs.append(ref)

    def take(self, value: Any, *more: Any) -> Any:
        self.items.append([value, *more])
        return value

    def caught(self, error: Exception, *more: Any) -> Any:
        self.items.append([type(error).__name__, *more])
        return None

    async def later(self, steps: Any) -> Any:
        """The same, one after another, with waits among them."""
        seen: list[Any] = [self.count]
        view = self.items.view()
        for step in steps:
            if step[0] == "wait":
                seen.append(await self._awaited(step[1]))
            elif step[0] == "both":
                seen.append(len(await gather(self._awaited(step[1]), self._awaited(step[1] + 1), failures=True)))
            elif step[0] == "either":
                try:
                    seen.append(await within(step[1], self._awaited(step[1])))
                except (ValueError, TypeError, LookupError, KeeveError) as error:
                    seen.append(type(error).__name__)
            else:
                getattr(self, f"_{step[0]}")(*step[1:])
        self.items.append([len(view), seen])
        return seen

    def _awaited(self, pick: int) -> Any:
        promise = self._promise(pick) if pick % 2 else None
        return self._want(False, False) if promise is None else promise

    def _begin(self, pick: int, steps: Any) -> Any:
        promise = near(self._to(pick)).later(steps)
        if pick % 2:
            self.promises.append(promise)
        return promise

    def _go(self, pick: int, steps: Any, keep: bool) -> Any:
        promise = self._to(pick).later(steps)
        if keep:
            self.promises.append(promise)
        return promise

    @read
    def look(self) -> Any:
        return [len(self.items), list(self.named), self.count]

    # What a program may say.

    def _set(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def _append(self, value: Any) -> None:
        self.items.append(value)

    def _change(self, what: str, at: int) -> None:
        if self.items:
            at %= len(self.items)
            if what == "set":
                self.items[at] = [at]
            elif what == "delete":
                del self.items[at]
            elif what == "insert":
                self.items.insert(at, LONG)
            else:
                self.items.clear()

    def _put(self, key: Any, value: Any) -> None:
        self.named[key] = value
        self.tags.add(key)

    def _remove(self, key: Any) -> None:
        self.named.pop(key, None)
        self.tags.discard(key)

    def _spawn(self) -> None:
        self.refs.append(self.spawn(Doer, count=1, items=[1], named={"k": LONG}))

    def _forget(self) -> None:
        self.refs.clear()
        self.promises.clear()

    def _to(self, pick: int) -> Any:
        refs = [ref for ref in self.refs if ref.session is None]
        return refs[pick % len(refs)] if refs else self.ref

    def _far(self, pick: int) -> Any:
        refs = [ref for ref in self.refs if ref.session is not None]
        return refs[pick % len(refs)] if refs else None

    def _near(self, pick: int, steps: Any) -> Any:
        return near(self._to(pick)).do(steps)

    def _try(self, pick: int, steps: Any) -> Any:
        try:
            return near(self._to(pick)).do(steps)
        except (ValueError, TypeError, LookupError, KeeveError):
            self.count += 1
            return None

    def _send(self, pick: int, steps: Any, keep: bool) -> Any:
        promise = self._to(pick).do(steps)
        if keep:
            self.promises.append(promise)
        return promise

    def _tell(self, pick: int, steps: Any, keep: bool) -> Any:
        far = self._far(pick)
        if far is None:
            return None
        promise = far.do(steps)
        if keep:
            self.promises.append({"deep": [promise]})
        return promise

    def _carry(self, pick: int) -> Any:
        far, promise = self._far(pick), self._promise(pick)
        if far is None or promise is None:
            return None
        return far.take([promise, self.ref], *[LONG][: pick % 2])

    def _promise(self, pick: int) -> Any:
        kept = [item if isinstance(item, Promise) else item["deep"][0] for item in self.promises]
        return kept[pick % len(kept)] if kept else None

    def _want(self, view: bool, keep: bool) -> Any:
        promise = self.model.complete(self.items.view() if view else [LONG], tools=self.named.view())
        if keep:
            self.promises.append(promise)
        return promise

    def _react(self, pick: int, how: str) -> Any:
        promise = self._promise(pick)
        if promise is None:
            return None
        if how == "take":
            return promise.then(self.take, 1, broken=self.caught)
        if how == "pass":
            return promise.then(None, broken=self.caught)
        if how == "do":
            return promise.then(self.do)
        return promise.then(near(self._to(pick)).take, promise)

    def _give(self, pick: int) -> Any:
        return self._promise(pick)

    def _inside(self, pick: int) -> Any:
        return {"inside": [self._promise(pick), self.ref]}

    def _cancel(self, pick: int) -> Any:
        promise = self._promise(pick)
        return None if promise is None else cancel(promise, ValueError("given up"))

    def _fact(self, mode: int, value: Any) -> None:
        handle = self.assert_fact("my.fact", value, self.ref, presence=mode == 2, text=Text("short"))
        self.handles.append(handle)

    def _retract(self) -> None:
        if self.handles:
            self.retract(self.handles[-1])
            del self.handles[-1]

    def _narrow(self, pick: int) -> None:
        target = self if pick % 2 else near(self._to(pick))
        self.refs.append(target.narrow("do", "take", read_only=pick == 5))

    def _revoke(self, pick: int) -> None:
        narrowed = [ref for ref in self.refs if ref.session is None and ref.actor > 1]
        if narrowed:
            self.revoke(narrowed[-1])

    def _observe(self, pick: int) -> None:
        self.observe("(my.fact . _)", self.take, after="start" if pick % 2 else "head")

    def _unobserve(self, pick: int) -> None:
        self.unobserve(1 + pick % 2)

    def _chance(self) -> Any:
        self.value = [self.new_id(), self.random.integer(0, 9), self.now()]
        return self.value

    def _fail(self) -> None:
        self.items.append(CANARY)
        self.named["canary"] = CANARY
        self.spawn(Doer)
        self.ref.take(CANARY)
        self.model.complete(CANARY, self.items.view())
        self.assert_fact("my.canary", CANARY)
        self.narrow("do")
        self.observe("(my.canary . _)", self.take)
        raise ValueError("failed")

    def _bad(self) -> None:
        self.items.append([CANARY, object()])
