"""What of the caller's environment other people's code may see."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from qnn.model_code.process import environment_for_code, log_tail, run_logged, without_secrets

SECRETS = [
    "HF_TOKEN", "GITHUB_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "MY_SECRET", "DB_PASSWORD", "GH_PAT",
    "AWS_ACCESS_KEY_ID", "OPENAI_API_KEY", "SSH_AUTH_SOCK", "GOOGLE_APPLICATION_CREDENTIALS", "npm_config__authToken",
]  # fmt: skip


def test_model_code_sees_only_what_it_needs(tmp_path: Path) -> None:
    seen = environment_for_code(
        {"PATH": "/bin", "LANG": "de_DE.UTF-8", "HOME": "/home/me", "PYTHONPATH": "/x", "HTTPS_PROXY": "http://u:p@h"}
        | dict.fromkeys(SECRETS, "s"),
        tmp_path,
    )
    assert (seen["PATH"], seen["LANG"], seen["HOME"], seen["PYTHONHASHSEED"]) == (
        "/bin",
        "de_DE.UTF-8",
        str(tmp_path),
        "0",
    )
    assert not {"PYTHONPATH", "HTTPS_PROXY", *SECRETS} & seen.keys()


def test_pip_sees_its_settings_but_no_secrets() -> None:
    kept = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "PIP_INDEX_URL": "https://u:p@h",
        "HTTPS_PROXY": "http://p",
        "PATHS": "x",
    }
    elsewhere = {"PYTHONPATH": "/lib", "PYTHONHOME": "/usr"}  # pip would take what lies there for installed
    assert without_secrets(kept | elsewhere | dict.fromkeys(SECRETS, "s")) == kept


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=4)))
def test_no_variable_is_made_up_for_pip(environment: dict[str, str]) -> None:
    assert without_secrets(environment).items() <= environment.items()


def test_log_tail_starts_where_the_run_started(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old\n")
    command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i; echo; done; exit 3"]
    assert run_logged(command, environment={"PATH": "/bin:/usr/bin"}, cwd=tmp_path, log=log, seconds=30) == 3
    assert log_tail(log, start=4) == [f"| line {i}" for i in range(3, 11)]
    assert log_tail(log, start=log.stat().st_size - 9) == ["| line 10"]


def test_log_tail_of_a_long_log_starts_with_a_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{number:05d} {'x' * 3000}\n" for number in range(100)))
    assert [line[:7] for line in log_tail(log)] == ["| 00098", "| 00099"]
    assert all(len(line) == 302 for line in log_tail(log))
