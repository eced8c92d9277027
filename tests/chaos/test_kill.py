"""A short run of the chaos script, whose long run is quoted in docs/reliability.md."""

from tests.chaos import kill_builds


def test_killed_builds_resume_to_the_same_bytes() -> None:
    assert kill_builds.run(count=3, seed=1) == 0
