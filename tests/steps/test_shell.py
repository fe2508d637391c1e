"""Shell steps: what reaches the process, what becomes of its end, its output and its log (docs/format.md, Shell)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.engine.workers import wait_until
from tests.steps.support import Bench, enter, failure, output, shell
from workflows.engine.contract import Effect, Settled
from workflows.errors import Failure
from workflows.expressions import BadExpression, compile_value

MIB = 1024 * 1024


# ---- entering ---------------------------------------------------------------------------------------------------------


def test_inputs_hold_the_texts_that_the_process_gets_and_only_the_names_of_secrets() -> None:
    step = shell(
        "make",
        env={
            "TEXT": "as it is",
            "NUMBER": "${ params.n }",
            "DOUBLE": "${ params.d }",
            "LIST": "${ params.l }",
            "YES": "${ true }",
            "UNSET": "${ null }",
            "KEY": {"secret": "deploy_key"},
        },
        stdin="${ params.l }",
        cwd="sub",
    )

    effect = enter(step, params={"n": 3, "d": 0.1, "l": [1, {"b": None, "a": "ä"}]})

    assert effect == Effect(
        inputs={
            "env": {
                "TEXT": "as it is",
                "NUMBER": "3",
                "DOUBLE": "0.1",
                "LIST": '[1,{"a":"ä","b":null}]',
                "YES": "true",
                "KEY": {"secret": "deploy_key"},
            },
            "run": "make",
            "stdin": '[1,{"a":"ä","b":null}]',
            "cwd": "sub",
        },
        access="write",
        idempotent=False,
        workspace="shared",
        timeout_ms=600_000,
    )


def test_the_file_decides_about_access_and_idempotence() -> None:
    effect = enter(shell("true", access="read", idempotent=True, workspace="read"))

    assert isinstance(effect, Effect)
    assert (effect.access, effect.idempotent, effect.workspace) == ("read", True, "read")


def test_a_timeout_may_be_computed() -> None:
    effect = enter(shell("true", timeout=compile_value("${ params.t }")), params={"t": "1m30s"})

    assert isinstance(effect, Effect)
    assert effect.timeout_ms == 90_000
    with pytest.raises(BadExpression) as caught:
        enter(shell("true", timeout=compile_value("${ params.t }")), params={"t": "soon"})
    assert str(caught.value) == (
        '"timeout" must be a duration: "soon" is not a duration. Examples: 500ms, 30s, 5m, 2h, 1h30m, 7d.'
    )


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            shell("true", env={"BIG": "${ params.big }"}),
            'The variable "BIG" is 102,401 bytes; one variable or argument may hold 102,400 bytes. '
            "Pass large values with `stdin`.",
        ),
        (
            shell(argv=["cat", "${ params.big }"]),
            "Argument 1 of the program is 102,401 bytes; one variable or argument may hold 102,400 bytes. "
            "Pass large values with `stdin`.",
        ),
    ],
)
def test_a_value_that_the_system_would_refuse_fails_before_anything_starts(step: Any, message: str) -> None:
    assert enter(step, params={"big": "x" * 102_401}) == Settled(
        outcome="failed", failure=Failure(code="value_too_large", message=message)
    )


@pytest.mark.parametrize("letter", ["x", "ä", "😀"])
def test_a_value_of_100_kib_reaches_the_process(bench: Bench, letter: str) -> None:
    value = letter * (102_400 // len(letter.encode()))

    result = bench.run(shell(argv=["printenv", "BIG"], env={"BIG": "${ v }"}), {"v": value})

    assert output(result) == value


def test_many_large_arguments_are_too_large_together(bench: Bench) -> None:
    result = bench.run(shell(argv=["true", *["x" * 100_000] * 40]))

    assert failure(result) == (
        "failed",
        "value_too_large",
        "Arguments and environment together are larger than the system allows. Pass large values with `stdin`.",
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("${ v }", '"argv" must be a list of at least the program, but it is the text "x".'),
        (["echo", "${ null }"], "argv[1] is null; an argument must have a value."),
    ],
)
def test_arguments_must_have_values(argv: Any, message: str) -> None:
    with pytest.raises(BadExpression) as caught:
        enter(shell(argv=argv), v="x")
    assert str(caught.value) == message


# ---- what the process gets --------------------------------------------------------------------------------------------


def test_the_environment_is_fresh(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "leak")
    monkeypatch.setenv("HOME", "/home/worker")

    result = bench.run(shell(argv=["env"], env={"MINE": "1", "WAYPOST_STEP": "forged"}, parse="lines"))

    found = dict(line.split("=", 1) for line in output(result))
    assert len(found.pop("WAYPOST_EFFECT")) == 32
    assert found == {
        "PATH": os.environ["PATH"],
        "HOME": "/home/worker",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PWD": str(bench.workspace),
        "MINE": "1",
        "WAYPOST_RUN_ID": "7",
        "WAYPOST_STEP": "work",
        "WAYPOST_VISIT": "3",
        "WAYPOST_ATTEMPT": "2",
        "WAYPOST_INDEX": "",
        "WAYPOST_IDEMPOTENCY_KEY": "6b0c2f5e-0000-4000-8000-000000000001",
    }


def test_a_step_in_a_map_knows_the_index_of_its_item(bench: Bench) -> None:
    assert output(bench.run(shell('echo "$WAYPOST_INDEX"'), index=4)) == "4"


def test_a_script_runs_with_errexit_and_nounset(bench: Bench) -> None:
    assert failure(bench.run(shell("false\necho not reached")))[1:] == ("exit_nonzero", "Exit code 1.")
    result = bench.run(shell('echo "$NOT_SET"'))
    assert result.failure is not None
    assert result.failure.message.startswith("Exit code 2: ")
    assert "NOT_SET" in result.failure.message


def test_arguments_are_passed_without_a_shell(bench: Bench) -> None:
    result = bench.run(shell(argv=["printf", "%s|", "a b", "$HOME; rm -rf /", "", "*", "${ v }"]), {"v": [1, "x"]})

    assert output(result) == 'a b|$HOME; rm -rf /||*|[1,"x"]|'


def test_standard_input_is_empty_without_stdin(bench: Bench) -> None:
    assert output(bench.run(shell("wc -c | tr -d ' '"))) == "0"


def test_a_large_standard_input_arrives_whole_even_if_output_flows_at_once(bench: Bench) -> None:
    text = "0123456789abcde\n" * 60_000

    result = bench.run(shell("tee /dev/stderr | wc -c | tr -d ' '", stdin="${ v }"), {"v": text})

    assert output(result) == "960000"


def test_a_program_may_ignore_its_input(bench: Bench) -> None:
    assert output(bench.run(shell("echo done", stdin="${ v }"), {"v": "x" * 5_000_000})) == "done"


def test_a_step_works_in_the_workspace_or_below_it(bench: Bench) -> None:
    (bench.workspace / "sub").mkdir()

    assert output(bench.run(shell("pwd -P"))) == str(bench.workspace.resolve())
    assert output(bench.run(shell("pwd -P", cwd="sub"))) == str((bench.workspace / "sub").resolve())


def test_a_step_without_workspace_works_in_an_empty_folder_that_is_removed(bench: Bench) -> None:
    folder = output(bench.run(shell("touch made; pwd", workspace="none")))

    assert folder != str(bench.workspace)
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("cwd", "message"),
    [
        ("..", 'The folder ".." is outside of the workspace.'),
        ("link", 'The folder "link" is outside of the workspace.'),
        ("/tmp", 'The folder "/tmp" must be relative to the workspace.'),
        ("missing", 'There is no folder "missing" in the workspace.'),
        ("file", '"file" in the workspace is not a folder.'),
    ],
)
def test_a_folder_outside_of_the_workspace_is_refused(bench: Bench, cwd: str, message: str) -> None:
    (bench.workspace / "link").symlink_to("/tmp")
    (bench.workspace / "file").touch()

    assert failure(bench.run(shell("touch made", cwd=cwd))) == ("failed", "start_failed", message)


# ---- how it ends ------------------------------------------------------------------------------------------------------


def test_a_failure_quotes_the_last_line_of_standard_error_and_has_no_output(bench: Bench) -> None:
    result = bench.run(shell("echo partial; sleep 0.05; echo first >&2; echo 'the disk is full' >&2; exit 9"))

    assert failure(result) == ("failed", "exit_nonzero", "Exit code 9: the disk is full")
    assert result.exit_code == 9
    assert result.log == "partial\nfirst\nthe disk is full\n"


def test_a_named_exit_code_is_an_outcome_that_keeps_the_output(bench: Bench) -> None:
    result = bench.run(shell("echo same; exit 10", exits={10: "unchanged"}))

    assert (result.outcome, output(result), result.exit_code) == ("unchanged", "same", 10)


def test_a_named_exit_code_needs_no_json(bench: Bench) -> None:
    result = bench.run(shell("exit 75", exits={75: "later"}, parse="json", schema={"type": "object"}))

    assert (result.outcome, output(result)) == ("later", None)


def test_the_end_by_a_signal_is_named_and_counts_as_in_a_shell(bench: Bench) -> None:
    result = bench.run(shell("kill -SEGV $$"))

    assert failure(result) == ("failed", "exit_nonzero", "The process was ended by SIGSEGV (11).")
    assert result.exit_code == 139


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["no-such-program"], "command_not_found", 'The program "no-such-program" was not found in PATH.'),
        (["./missing"], "command_not_found", 'The program "./missing" was not found.'),
        (["./plain"], "start_failed", 'The program "./plain" cannot be started: it is not executable.'),
    ],
)
def test_a_program_that_cannot_be_started_fails_clearly(bench: Bench, argv: list[str], code: str, message: str) -> None:
    (bench.workspace / "plain").write_text("echo\n")

    assert failure(bench.run(shell(argv=argv))) == ("failed", code, message)


def test_a_program_of_the_workspace_is_found(bench: Bench) -> None:
    script = bench.workspace / "tool"
    script.write_text("#!/bin/sh\necho mine $1\n")
    script.chmod(0o700)

    assert output(bench.run(shell(argv=["./tool", "x"]))) == "mine x"


def test_a_timeout_ends_the_process_and_has_its_own_outcome(bench: Bench) -> None:
    result = bench.run(shell("echo begun; sleep 60", timeout=200))

    assert failure(result) == ("timed_out", "timeout", "The step took longer than its timeout and was stopped.")
    assert result.log == "begun\n"


def test_a_cancel_reaches_a_process_that_ignores_term_within_two_seconds(bench: Bench) -> None:
    token, _ = bench.start(shell("trap '' TERM; echo $$ > pid; while :; do sleep 60; done"))
    pid_file = bench.workspace / "pid"
    wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))

    begin = time.monotonic()
    assert bench.pool.stop(token, "cancelled")
    result = bench.deliveries.get(timeout=10).result

    assert time.monotonic() - begin < 2
    assert failure(result) == ("cancelled", "cancelled", "The step was cancelled while it ran.")
    assert not _lives(int(pid_file.read_text()))


def test_a_shutdown_leaves_the_attempt_interrupted(bench: Bench) -> None:
    token, _ = bench.start(shell("echo ready > ready; sleep 60"))
    wait_until((bench.workspace / "ready").exists)

    bench.pool.stop(token, "shutdown")

    assert failure(bench.deliveries.get(timeout=10).result) == (
        "interrupted",
        "crashed",
        "The worker was shut down while the step ran.",
    )


@pytest.mark.parametrize(
    "script",
    [
        "sleep 60 & echo $! > pid; echo done",
        "setsid sleep 60 & echo $! > pid; echo done",
        "(trap '' TERM; sleep 60 & echo $! > pid; wait) & until test -s pid; do :; done; echo done",
    ],
)
def test_a_grandchild_that_holds_the_pipes_does_not_hang_the_step(bench: Bench, script: str) -> None:
    begin = time.monotonic()

    result = bench.run(shell(script))

    assert output(result) == "done"
    assert time.monotonic() - begin < 2
    wait_until(lambda: not _lives(int((bench.workspace / "pid").read_text())))


def test_a_timeout_reaches_grandchildren_that_left_the_session_and_ignore_term(bench: Bench) -> None:
    script = (
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > pid; exec sleep 60 >/dev/null 2>&1' & wait; sleep 60"
    )

    result = bench.run(shell(script, timeout=500))

    assert result.outcome == "timed_out"
    wait_until(lambda: not _lives(int((bench.workspace / "pid").read_text())))


def test_what_is_left_in_the_background_may_finish_its_last_words(bench: Bench) -> None:
    assert output(bench.run(shell("(sleep 0.05; echo late) & echo early"))) == "early\nlate"


# ---- output -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "parse", "expected"),
    [
        (r"a\n", "text", "a"),
        (r"a\n\n", "text", "a\n"),
        (r"a\r\n", "text", "a"),
        (r"a", "text", "a"),
        ("", "text", ""),
        (r" a \nb", "text", " a \nb"),
        (r"a\nb\n", "lines", ["a", "b"]),
        (r"a\r\n\r\nb", "lines", ["a", "", "b"]),
        ("", "lines", []),
        (r"\n", "lines", [""]),
        (r"ignored\n", "none", None),
        (r"{\"b\": [1, 2.5, null], \"a\": true}\n", "json", {"b": [1, 2.5, None], "a": True}),
        (r"\357\273\277[1]", "json", [1]),
        ("null", "json", None),
    ],
)
def test_standard_output_is_parsed(bench: Bench, printed: str, parse: str, expected: Any) -> None:
    result = bench.run(shell(f'printf "{printed}"', parse=parse))

    assert output(result) == expected
    assert not result.repaired


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("", "Standard output is empty, but `parse: json` needs a JSON value."),
        (
            "{1",
            "Standard output is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1).",
        ),
        ("[NaN]", "Standard output is not JSON: NaN is not a JSON number."),
        ('{"a":1,"b":2,"a":3}', 'Standard output is not JSON: key "a" appears twice.'),
        ("1 2", "Standard output is not JSON: Extra data: line 1 column 3 (char 2)."),
        (
            '{"id":9007199254740993}',
            'The output cannot be stored: "id" is 9007199254740993; '
            "whole numbers beyond ±9007199254740991 lose digits.",
        ),
        ('{"x":1e999}', 'The output cannot be stored: "x" is Infinity, which JSON cannot hold.'),
    ],
)
def test_output_that_is_not_json_is_refused_with_the_reason(bench: Bench, printed: str, message: str) -> None:
    result = bench.run(shell('printf %s "$P"', env={"P": printed}, parse="json"))

    assert failure(result) == ("failed", "invalid_output", message)


def test_json_nested_too_deeply_is_refused(bench: Bench) -> None:
    result = bench.run(shell("python3 -c 'print(\"[\" * 100000)'", parse="json"))

    assert failure(result)[1:] == ("invalid_output", "Standard output is nested too deeply to be read as JSON.")


def test_a_schema_is_checked_and_the_place_named(bench: Bench) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}}

    assert output(bench.run(shell("echo '{\"n\":[1]}'", parse="json", schema=schema))) == {"n": [1]}
    assert failure(bench.run(shell('echo \'{"n":[1,"x"]}\'', parse="json", schema=schema))) == (
        "failed",
        "invalid_output",
        'The output does not fit the schema of the step: output.n[1]: "x" is not of type "integer".',
    )


def test_a_schema_elsewhere_is_never_fetched(bench: Bench) -> None:
    result = bench.run(shell("echo 1", parse="json", schema={"$ref": "http://127.0.0.1:9/schema.json"}))

    assert failure(result)[:2] == ("failed", "invalid_output")
    assert "references to other documents are not followed" in failure(result)[2]


def test_what_cannot_be_stored_is_replaced_and_marked(bench: Bench) -> None:
    result = bench.run(shell(r"printf 'a\000b\377c'"))

    assert output(result) == "a\ufffdb\ufffdc"
    assert result.repaired
    assert result.log == "a\ufffdb\ufffdc"


def test_escaped_nul_and_half_surrogates_in_json_are_replaced_in_keys_too(bench: Bench) -> None:
    result = bench.run(shell(r"""printf '{"k\\u0000":"\\ud800"}'""", parse="json"))

    assert output(result) == {"k\ufffd": "\ufffd"}
    assert result.repaired


def test_text_of_exactly_the_limit_is_kept(bench: Bench) -> None:
    result = bench.run(shell(f"head -c {MIB - 2} /dev/zero | tr '\\0' x"))

    assert output(result) == "x" * (MIB - 2)


def test_longer_text_is_cut_and_marked(bench: Bench) -> None:
    result = bench.run(shell("head -c 20971520 /dev/zero | tr '\\0' x"))

    mark = "\n… cut: standard output was 20,971,520 bytes"
    text = output(result)
    assert text.endswith(mark)
    assert set(text.removesuffix(mark)) == {"x"}
    assert result.output is not None
    assert result.output.size == MIB
    assert len(result.log.encode()) <= MIB
    assert "… 19,988,480 bytes left out …" in result.log


def test_text_is_cut_between_characters(bench: Bench) -> None:
    result = bench.run(shell("yes äöü | head -c 3000000"))

    assert not result.repaired
    assert "\ufffd" not in output(result)


def test_lines_are_cut_at_a_line(bench: Bench) -> None:
    result = bench.run(shell("yes abcdefghi | head -c 3000000", parse="lines"))

    *lines, mark = output(result)
    assert mark == "… cut: standard output was 3,000,000 bytes"
    assert set(lines) == {"abcdefghi"}
    assert len(lines) > 80_000


def test_longer_json_is_too_large(bench: Bench) -> None:
    result = bench.run(shell("printf '\"'; head -c 2000000 /dev/zero | tr '\\0' x; printf '\"'", parse="json"))

    assert failure(result) == (
        "failed",
        "output_too_large",
        "Standard output is 2,000,002 bytes; `parse: json` takes at most 1,048,576.",
    )


def test_both_outputs_are_drained_at_once(bench: Bench) -> None:
    script = "head -c 5000000 /dev/zero >&2 & head -c 5000000 /dev/zero; wait"

    result = bench.run(shell(script, parse="none"))

    assert (result.outcome, output(result)) == ("ok", None)


def test_endless_output_ends_with_the_timeout(bench: Bench) -> None:
    result = bench.run(shell("yes & yes >&2", timeout=300))

    assert result.outcome == "timed_out"
    assert len(result.log.encode()) <= MIB


def test_the_log_keeps_lines_of_both_outputs_apart(bench: Bench) -> None:
    result = bench.run(shell("printf one; sleep 0.05; echo two >&2; sleep 0.05; echo three"))

    assert result.log == "one\ntwo\nthree\n"


# ---- secrets ----------------------------------------------------------------------------------------------------------


def test_a_secret_reaches_the_environment_and_is_masked_everywhere_else(bench: Bench) -> None:
    bench.secrets["deploy_key"] = "s3cr3t-value"
    step = shell('test "$KEY" = s3cr3t-value; echo "key $KEY"', env={"KEY": {"secret": "deploy_key"}})

    result = bench.run(step)

    assert output(result) == "key ***"
    assert result.log == "key ***\n"


def test_a_secret_is_masked_in_failures_and_in_json(bench: Bench) -> None:
    bench.secrets["deploy_key"] = "s3cr3t-value"
    env = {"KEY": {"secret": "deploy_key"}}

    failed = bench.run(shell('echo "bad $KEY" >&2; exit 1', env=env))
    parsed = bench.run(shell('printf \'{"%s": ["%s"]}\' "$KEY" "$KEY"', env=env, parse="json"))

    assert failure(failed)[2] == "Exit code 1: bad ***"
    assert output(parsed) == {"***": ["***"]}


def test_a_missing_secret_fails_before_anything_starts(bench: Bench) -> None:
    result = bench.run(shell("touch made", env={"KEY": {"secret": "deploy_key"}}))

    assert failure(result) == (
        "failed",
        "secret_missing",
        'Secret "deploy_key" has no value on this server. Set WAYPOST_SECRET_DEPLOY_KEY for the workers.',
    )
    assert not (bench.workspace / "made").exists()


# ---- helpers ----------------------------------------------------------------------------------------------------------


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
