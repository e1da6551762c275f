"""Records that lie near before one another are served from one read of the file."""

import random

from dataspace.log.near import AHEAD, FURTHEST, Near

FILES = {number: random.Random(number).randbytes(300_000) for number in (1, 2)}


class Disk:
    """Counts what is read of two files."""

    def __init__(self):
        self.reads = []

    def pread(self, segment, offset, length):
        self.reads.append(length)
        return FILES[segment][offset : offset + length]


def test_bytes_are_those_of_the_place_that_is_asked_for():
    disk, near, drawn = Disk(), Near(), random.Random(1)
    for _ in range(500):
        segment, offset = drawn.choice((1, 2)), drawn.randrange(299_000)
        for _ in range(drawn.randrange(5)):
            found, at = near.at(disk.pread, segment, offset)
            assert found[at : at + AHEAD][:64] == FILES[segment][offset : offset + 64]
            offset = max(0, offset - drawn.randrange(20_000))


def test_going_back_in_small_steps_costs_few_reads():
    disk, near = Disk(), Near()
    for offset in range(290_000, 0, -1_000):
        near.at(disk.pread, 1, offset)
    assert len(disk.reads) < 12
    assert max(disk.reads) == FURTHEST


def test_far_steps_cost_what_one_record_costs():
    disk, near = Disk(), Near()
    for offset in (290_000, 100_000, 10, 200_000):
        near.at(disk.pread, 1, offset)
    assert disk.reads == [AHEAD] * 4
