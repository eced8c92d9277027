"""A short run of the chaos script, whose long run is quoted in docs/reliability.md."""

from tests.chaos import kill_pulls


def test_killed_pulls_are_completed_without_a_byte_twice() -> None:
    tally = kill_pulls.run(count=3, seed=2)
    assert (tally.killed, tally.wrong) == (3, 0)
