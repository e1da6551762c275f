"""The tree of forks on the page, and a session as it was: seen, stepped through, forked from, snapshotted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keeve import Actor, Session, actor, effect
from keeve.server.page.forks import LETTER, NARROW, picture, trees_of
from tests.page_visits import browser, elements_of, form_of, only_ours, text_of
from tests.server_worlds import World, world

HOSTILE = '</svg><script src="//evil.example/x.js"></script><img src=x onerror=alert(1)>"\''


class Says:
    """A model that calls what is hostile, once, and says it."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        call = {"id": "c1", "type": "function", "function": {"name": HOSTILE, "arguments": HOSTILE}}
        more = {"tool_calls": [call]} if len(messages) == 1 else {}
        return {"message": {"role": "assistant", "content": HOSTILE, **more}, "usage": None}


@actor("page.notes", version=1)
class Notes(Actor):
    line: str = ""

    def write(self, line: str) -> None:
        self.line = line


@actor("page.friends", version=1)
class Friends(Actor):
    known: list[Any]


async def forked(w: World) -> None:
    """Of ann's: `s` with three turns, `t` parted after the first of them, `u` from `t` after another turn."""
    s = await w.host.asking("ann").spawn(Session, "s")
    for words in ("one", "two", "three"):
        await s.turn(words)
    [done] = w.host.query("(turn-done 1 . _)", session="s")
    t = await s.fork(at=done.seq, into="t")
    await t.turn("elsewhere")
    await t.fork(into="u")


def row(id: str, seq: int, of: str | None = None, at: int = 0) -> dict[str, Any]:
    return {"id": id, "seq": seq, "updated": "", "forked_from": {"session": of, "at": at} if at else None}


def test_a_fork_leaves_its_parents_line_where_it_parted() -> None:
    [root] = trees_of([row("a", 9), row("b", 7, "a", 3), row("c", 12, "a", 5), row("d", 8, "b", 7)])
    lines = {line.id: line for line in picture(root, {"a": [2]}).lines}
    assert [line.id for line in picture(root, {}).lines] == ["a", "c", "b", "d"]  # what parted last is nearest
    points = {point.seq: point.x for point in lines["a"].points}
    assert points.keys() == {2, 3, 5, 9}
    assert (lines["b"].start, lines["c"].start) == (points[3], points[5])
    assert lines["d"].path.startswith(f"M{lines['b'].end} {lines['b'].y}V")


def test_of_a_parent_that_is_not_there_is_drawn_what_its_forks_tell() -> None:
    trees = trees_of([row("b", 7, "a", 3), row("c", 9, "a", 5), row("d", 4, None, 2)])
    assert [(tree.id, tree.known, tree.seq) for tree in trees] == [("a", False, 5), ("", False, 2)]
    assert [(line.id, line.known) for line in picture(trees[0], {}).lines] == [("a", False), ("c", True), ("b", True)]


def test_of_a_long_name_a_small_screen_has_as_much_as_fits_there_and_of_one_far_to_the_right_all() -> None:
    [root] = trees_of([row("a" * 50, 9), row("b", 7, "a" * 50, 3)])
    long, short = picture(root, {}).lines
    assert (long.label, long.brief, short.brief) == ("a" * 35 + "…", "a" * (len(long.brief) - 1) + "…", "b")
    assert 250 < long.end + LETTER * len(long.brief) <= NARROW
    [far] = picture(root, {"a" * 50: range(9)}).lines[:1]
    assert (far.end > NARROW, far.brief) == (True, far.label)


def test_what_is_too_much_is_left_out_and_counted() -> None:
    rows = [row("root", 999), *(row(f"f{n}", 1000, "root", n + 1) for n in range(300))]
    [root] = trees_of(rows)
    drawn = picture(root, {})
    assert (len(drawn.lines), drawn.cut) == (200, 101)


async def test_the_picture_leads_to_every_session_and_to_its_past() -> None:
    async with world() as w, browser(w, "ann") as ann:
        await forked(w)
        for address in ("/forks", "/forks?of=t"):
            answer = await ann.get(address)
            only_ours(answer.text)
            links = {said.get("href") for tag, said in elements_of(answer.text) if tag == "a"}
            assert {"/sessions/s", "/sessions/t", "/sessions/u", "/sessions/s/at/3"} <= links
        current = [
            said for tag, said in elements_of(answer.text) if said.get("aria-current") == "page" and "t" in said["href"]
        ]
        assert [said["href"] for said in current] == ["/sessions/t"]


async def test_sessions_of_others_are_not_in_the_picture() -> None:
    async with world() as w, browser(w, "ann") as ann, browser(w, "bob") as bob:
        await forked(w)
        await (await w.host.asking("bob").get("s")).fork(into="his")
        assert "/sessions/his" not in (await ann.get("/forks")).text
        shown = (await bob.get("/forks")).text
        assert "/sessions/his" in shown
        assert 'href="/sessions/s' not in shown
        theirs, none = [await bob.get("/forks", params={"of": id}) for id in ("t", "none")]
        assert theirs.status_code == none.status_code == 404
        assert theirs.text.replace("&#39;t&#39;", "&#39;none&#39;") == none.text


async def test_a_session_is_seen_as_it_was() -> None:
    async with world() as w, browser(w, "ann") as ann:
        await forked(w)
        shown = text_of((await ann.get("/sessions/s/at/3")).text)
        assert ("one" in shown, "two" in shown) == (True, False)
        assert "There were none" in text_of((await ann.get("/sessions/s/at/1")).text)
        links = {said.get("href") for tag, said in elements_of((await ann.get("/sessions/s/at/3")).text) if tag == "a"}
        assert {"/sessions/s/at/2", "/sessions/s/at/4"} <= links
        assert (await ann.get("/sessions/s/at?seq=3")).headers["location"] == "/sessions/s/at/3"
        # An ancestor's past is a fork's past as well.
        assert "one" in text_of((await ann.get("/sessions/t/at/2")).text)


@pytest.mark.parametrize("seq", ["0", "99", "x", "-1", "9" * 30, "٣", HOSTILE.replace("/", "")])
async def test_a_seq_that_is_none_is_told(seq: str) -> None:
    async with world() as w, browser(w, "ann") as ann:
        await forked(w)
        answer = await ann.get(f"/sessions/s/at/{seq}")
        assert answer.status_code in (404, 422)
        only_ours(answer.text)


async def test_a_long_past_comes_in_pages() -> None:
    async with world() as w, browser(w, "ann") as ann:
        s = await w.host.asking("ann").spawn(Session, "s")
        for n in range(31):
            await s.turn(f"words {n}.")
        head = w.host.row("s").seq
        newest = (await ann.get(f"/sessions/s/at/{head}")).text
        earlier = (await ann.get(f"/sessions/s/at/{head}?before=3")).text
        # The field `history` has each of them once.
        assert (newest.count("words 0."), newest.count("words 1.")) == (1, 3)
        assert (earlier.count("words 0."), earlier.count("words 1.")) == (3, 1)


async def test_one_goes_on_from_the_past_in_a_fork() -> None:
    async with world() as w, browser(w, "ann") as ann:
        await forked(w)
        form = form_of((await ann.get("/sessions/s/at/3")).text, "/sessions/s/fork")
        answer = await ann.post("/sessions/s/fork", data={**form, "into": "past"})
        assert answer.headers["location"] == "/sessions/past"
        assert await (await w.host.get("past")).history == ["one"]


async def test_a_snapshot_is_taken_and_listed() -> None:
    async with world() as w, browser(w, "ann") as ann:
        await forked(w)
        address = f"/sessions/s/at/{w.host.row('s').seq}"
        form = form_of((await ann.get(address)).text, "/sessions/s/snapshot")
        answer = await ann.post("/sessions/s/snapshot", data=form)
        shown = text_of((await ann.get(answer.headers["location"])).text)
        named = json.loads(shown[shown.index('{"session"') :].split("\n")[0])
        assert await (await w.host.restore(named)).history == ["one", "two", "three"]


async def test_the_badge_is_told_what_to_hold_the_chain_against() -> None:
    async with world() as w, browser(w, "ann") as ann:
        await forked(w)
        for address, seq in (("/sessions/t", w.host.row("t").seq), ("/sessions/s/at/3", 3)):
            shown = (await ann.get(address)).text
            [badge] = [said for _, said in elements_of(shown) if said.get("id") == "badge"]
            header = w.host.headers(str(badge["data-session"]), after=seq - 1, limit=1)[0]
            assert (badge["data-seq"], badge["data-hash"]) == (str(seq), header.hash.hex())
            assert "not checked" in text_of(shown)  # until the browser has


async def test_refs_in_fields_are_shown_as_what_they_lead_to_and_of_somebody_elses_only_the_uid() -> None:
    async with world(actors=[Notes, Friends]) as w, browser(w, "ann") as ann:
        mine, other = [await w.host.asking(name).spawn(Notes, f"of-{name}") for name in ("ann", "bob")]
        await w.host.asking("ann").spawn(Friends, "f", known=[mine, other])
        for place in ("/sessions/f", "/sessions/f/at/1"):
            shown = text_of((await ann.get(place)).text)
            assert "<session of-ann (page.notes)>" in shown
            assert f"<the session of uid {w.host.row('of-bob').uid.hex()}>" in shown
            assert "$ref" not in shown


@pytest.mark.parametrize("address", ["/sessions/{}/at/1", "/sessions/{}/at?seq=1"])
async def test_the_past_of_somebody_elses_session_is_not_there(address: str) -> None:
    async with world() as w, browser(w, "bob") as bob:
        await forked(w)
        theirs, none = [await bob.get(address.format(id), follow_redirects=True) for id in ("t", "none")]
        assert theirs.status_code == none.status_code == 404
        assert theirs.text.replace("&#39;t&#39;", "&#39;none&#39;") == none.text


async def test_hostile_words_are_text_wherever_the_past_has_them() -> None:
    async with world(actors=[Notes], devices={"model": Says()}) as w, browser(w, "owner") as owner:
        s = await w.host.spawn(Session, HOSTILE)
        await s.turn(HOSTILE)
        await s.fork(into=f"{HOSTILE}2")
        await (await w.host.spawn(Notes, "notes")).write(HOSTILE)
        links = [said["href"] for tag, said in elements_of((await owner.get("/forks")).text) if tag == "a"]
        [past, *_] = [link for link in links if link and "/at/" in link]
        for address in ("/forks", str(past).rpartition("/")[0] + "/4", "/sessions/notes/at/2"):
            answer = await owner.get(address)
            assert answer.status_code == 200
            only_ours(answer.text)
            assert "evil.example" in text_of(answer.text)
