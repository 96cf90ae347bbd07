"""What is wrong with the words of a command line is one sentence, which names the option."""

import pytest

from records.command_words import CommandWords


def parser() -> CommandWords:
    made = CommandWords(prog="python -m some.module")
    made.add_argument("-k", "--keep-nights", type=int)
    made.add_argument("--seconds", type=float)
    made.add_argument("--builder", choices=["spack", "none"])
    made.add_argument("site")
    return made


@pytest.mark.parametrize(
    ("words", "said"),
    [(["x", "--keep-nights", "abc"], "keep-nights: 'abc' is not a whole number"),
     (["x", "--seconds", "soon"], "seconds: 'soon' is not a number"),
     (["x", "--builder", "foo"], "builder: 'foo' is unknown; choose from 'spack', 'none'"),
     (["x", "--bulider", "foo"], "unrecognized arguments: --bulider foo"),
     ([], "the following arguments are required: site")],
)  # fmt: skip
def test_wrong_words_are_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words)
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert told.err == f"some.module: {said}; all options: python -m some.module --help\n"
    assert told.out == ""


def test_help_has_all_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["--help"])
    assert ended.value.code == 0 and "--keep-nights" in capsys.readouterr().out
