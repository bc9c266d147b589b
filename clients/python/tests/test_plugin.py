"""The plugin in a project of its own: its options reach the server, and nothing starts that is not asked for."""


def test_options_reach_the_server(pytester):
    pytester.makepyfile("""
        import json, urllib.request

        def test_clock(zenobe):
            with urllib.request.urlopen(zenobe.endpoint + "/_zenobe/clock") as answer:
                assert json.load(answer)["driven"] is True
    """)
    pytester.runpytest_subprocess("--zenobe-option=--driven-clock").assert_outcomes(passed=1)


def test_no_server_runs_for_tests_that_use_none(pytester, monkeypatch):
    monkeypatch.setenv("ZENOBE_BINARY", "/nowhere/zenobe")
    pytester.makepyfile("def test_nothing(): pass")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_without_a_binary_the_test_errs_with_the_reason(pytester, monkeypatch):
    monkeypatch.setenv("ZENOBE_BINARY", "/nowhere/zenobe")
    pytester.makepyfile("def test_something(zenobe_table): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ZENOBE_BINARY names /nowhere/zenobe*"])


def test_the_environment_is_as_before_after_a_test(pytester):
    pytester.makepyfile("""
        import os

        def test_inside(zenobe):
            assert os.environ["AWS_ENDPOINT_URL_DYNAMODB"] == zenobe.endpoint

        def test_after():
            assert "AWS_ENDPOINT_URL_DYNAMODB" not in os.environ
    """)
    pytester.runpytest_subprocess().assert_outcomes(passed=2)
