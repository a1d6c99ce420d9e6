"""What the tables say about the paper's sentences, with tables made by hand."""

import pytest

from ncap.experiments import claims
from ncap.report.tables import read_table, write_table

RUN = ("task", "policy", "seed")


def curve(task, policy, seed, *returns, steps=1000):
    points = enumerate(returns)
    return [
        dict(zip(RUN, (task, policy, seed), strict=True)) | {"steps": steps * i, "test_return": r} for i, r in points
    ]


def final(task, policy, *returns, gait="walk", regular=1.0):
    extra = {"gait": gait, "regular_share": regular}
    return [
        dict(zip(RUN, (task, policy, seed), strict=True)) | {"return_mean": found} | extra
        for seed, found in enumerate(returns)
    ]


@pytest.fixture
def verdicts(tmp_path):
    def judge(**tables):
        for name, rows in tables.items():
            write_table(tmp_path / f"{name}.csv", rows)
        claims.write(tmp_path)
        rows = read_table(tmp_path / "claims.csv")
        return {row["claim"]: row for row in rows if row["circuit"] == claims.CIRCUITS["ncap"]}

    return judge


def test_without_tables_nothing_is_tested(verdicts):
    assert {row["verdict"] for row in verdicts().values()} == {"not tested yet"}


def test_returns_before_and_after_training_and_their_spread(verdicts):
    found = verdicts(
        performance=[
            *curve("bumpy-run", "ncap", 0, 0.7, 0.95),
            *curve("bumpy-run", "mlp-evolution", 0, 0.5, 0.6, 0.8, 0.91),
            *curve("flat-walk", "ncap", 0, 0.52, 0.95),
            *curve("flat-walk", "mlp-evolution", 0, 0.5, 0.95),
        ],
        final=[
            *final("bumpy-run", "ncap", 0.94, 0.96, 0.95),
            *final("bumpy-run", "mlp-evolution", 0.80, 0.90, 0.85, gait="none"),
            *final("flat-walk", "ncap", 0.97, 0.97, 0.98),
            *final("flat-walk", "mlp-evolution", 0.98, 0.99, 0.99, gait="none"),
        ],
    )
    before = found["Before training it is better than an MLP"]
    assert float(before["value"]) == pytest.approx((0.2 + 0.02) / 2)  # means over tasks of 0.7 - 0.5 and 0.52 - 0.5
    assert (before["verdict"], before["seeds"]) == ("holds in part", "1")  # 0.02 is no difference
    after = found["After training it is as good as an MLP"]
    assert float(after["value"]) == pytest.approx(((0.95 - 0.85) + (2.92 - 2.96) / 3) / 2, abs=1e-4)
    assert (after["verdict"], after["seeds"]) == ("holds", "3")
    assert found["On the plane the MLP ends a little higher"]["verdict"] == "holds"
    sooner = found["On bumps it learns from fewer steps"]
    assert (float(sooner["value"]), sooner["verdict"]) == (3.0, "holds")  # 3000 steps beside 1000
    varies = found["It differs less from seed to seed"]
    assert float(varies["high"]) == pytest.approx(5.0)  # 0.05 beside 0.01 on bumpy-run
    natural = found["It walks in natural gaits more often than an MLP"]
    assert (natural["value"], natural["seeds"], natural["verdict"]) == ("1", "3", "holds")
    assert found["In other worlds it is as good or better"]["verdict"] == "not tested yet"


def test_who_learns_sooner_where_one_or_neither_learns(verdicts):
    def sooner(ours, theirs):
        curves = [*curve("bumpy-walk", "ncap", 0, 0.7, *ours), *curve("bumpy-walk", "mlp-evolution", 0, 0.5, *theirs)]
        row = verdicts(performance=curves)["On bumps it learns from fewer steps"]
        return row["value"], row["verdict"]

    assert sooner((0.95,), (0.6, 0.7, 0.8, 0.85)) == ("4", "holds")  # 1,000 steps beside 4,000 and more
    assert sooner((0.8, 0.8), (0.6, 0.7, 0.8, 0.95)) == ("0", "does not hold")
    assert sooner((0.8, 0.8), (0.6, 0.7, 0.8, 0.85)) == ("", "not tested yet")


def test_sizes_and_other_worlds(verdicts):
    sizes = [("mlp:4x4", 244, 0.5), ("mlp:16x16", 1132, 0.6), ("mlp-evolution", 79372, 0.9), ("ncap", 112, 0.95)]
    worlds = [
        ("kp", 20, "ncap", 0.6),
        ("kp", 60, "ncap", 0.9),
        ("kp", 20, "mlp-evolution", 0.8),
        ("kp", 60, "mlp-evolution", 0.9),
    ]
    found = verdicts(
        parameters=[
            {"task": "bumpy-run", "policy": policy, "seed": 0, "parameters": count, "return_mean": value}
            for policy, count, value in sizes
        ],
        generalization=[
            {"axis": axis, "value": value, "policy": policy, "seed": 0, "return": score}
            for axis, value, policy, score in worlds
        ],
    )
    small = found["Small MLPs are worse than large ones"]
    assert (float(small["value"]), small["verdict"]) == (pytest.approx(-0.4), "holds")
    other = found["In other worlds it is as good or better"]
    assert (float(other["value"]), other["verdict"]) == (pytest.approx(-0.1), "does not hold")


def test_flights_to_a_twin(verdicts):
    def on_the_robot(ours, theirs):
        flights = [
            {"policy": policy, "seed": seed, "gap": gap, "fell": fell}
            for policy, runs in (("ncap", ours), ("mlp-evolution", theirs), ("mlp-ppo", [[False]]))
            for seed, flown in enumerate(runs)
            for gap, fell in enumerate(flown)
        ]
        row = verdicts(flights=flights)["On the robot it walks on most trials and the MLP falls"]
        return float(row["value"]), row["seeds"], row["verdict"]

    assert on_the_robot([[False, False], [False, True]], [[True, True]]) == (0.75, "1", "holds")
    assert on_the_robot([[False, False]], [[False, False], [True, False]]) == (0.25, "1", "holds in part")
    assert on_the_robot([[True, True]], [[False, False]]) == (-1.0, "1", "does not hold")
