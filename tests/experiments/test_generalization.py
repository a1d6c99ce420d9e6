"""The summary of other worlds, with a table made by hand."""

import pytest

from ncap.experiments import generalization
from ncap.report.tables import read_table, write_table


def test_the_summary_has_means_over_seeds_and_marks_the_ends_of_an_axis(tmp_path):
    runs = [("kp", 120, "ncap", 0, 0.9, 1), ("kp", 120, "ncap", 1, 0.7, 3), ("kp", 20, "ncap", 0, 0.3, 20)]
    runs += [("kp", 120, "mlp-ppo", 0, 0.4, 0), ("kp", 70, "ncap", 0, 0.95, 0), ("friction", 0.2, "ncap", 0, 0.6, 2)]
    names = (*generalization.POINT, "return", "falls")
    write_table(
        tmp_path / "generalization.csv", [dict(zip(names, run, strict=True)) | {"episodes": 20} for run in runs]
    )
    generalization.draw(tmp_path)
    rows = {(row["axis"], row["value"]): row for row in read_table(tmp_path / "generalization-summary.csv")}
    assert list(rows) == [("kp", "20"), ("kp", "70"), ("kp", "120"), ("friction", "0.2")]  # numbers, not words
    assert [row["end"] for row in rows.values()] == ["low", "", "high", "high"]
    highest = rows["kp", "120"]
    assert float(highest["ncap"]) == pytest.approx(0.8)
    assert (highest["ncap falls"], highest["ncap episodes"], highest["mlp-ppo falls"]) == ("4", "40", "0")
    assert rows["kp", "70"]["mlp-ppo"] == ""
    assert (tmp_path / "generalization.png").exists()
