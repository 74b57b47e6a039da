"""Tables that read as text and as Markdown."""

import pytest

from specjax.launch.text_table import text_table


def test_numbers_stand_to_the_right_and_words_to_the_left():
  assert text_table(
      ["decoder", "tokens/s", "ratio", "when"],
      [["plain", "9.5", "-", "now"], ["ngram", "112.0", "1.30 (1.2-1.4)", ""]]) == (
          "| decoder | tokens/s |          ratio | when |\n"
          "| ------- | -------: | -------------: | ---- |\n"
          "| plain   |      9.5 |              - | now  |\n"
          "| ngram   |    112.0 | 1.30 (1.2-1.4) |      |")


@pytest.mark.parametrize("cells, to_right", [
    (["1", "-2.5e-3"], True), (["12%", "3 of 4"], True), (["5: 1.20", "nan"], True),
    (["1", "elsewhere"], False), (["2x1"], False), (["", "-"], False)])
def test_a_column_is_numeric_if_each_known_cell_is(cells, to_right):
  rule = text_table(["x"], [[cell] for cell in cells]).splitlines()[1]
  assert rule.endswith("-: |") == to_right


def test_cells_cannot_break_their_row():
  table = text_table(["a"], [["x|y"], [r"x\|y"], ["two\nlines"]])
  assert table.splitlines()[2:] == [r"| x\|y      |", r"| x\|y      |", "| two lines |"]


def test_a_long_cell_does_not_widen_the_others():
  first, _, short, long = text_table(["a", "b"], [["s", "t"], ["x" * 99, "t"]]).splitlines()
  assert len(first) == len(short) == 40 + len("|  | t   |") and long == f"| {'x' * 99} | t   |"


def test_a_head_alone_is_a_table():
  assert text_table(["a", "long"], []) == "| a   | long |\n| --- | ---- |"


def test_a_row_of_another_length_is_an_error():
  with pytest.raises(ValueError, match="2 columns has a row of 1 cells"):
    text_table(["a", "b"], [["x"]])
