"""Body plans: the places where a circuit repeats, the routes between them, and groups of them."""

import pytest

from ncap.errors import UserError
from ncap.plan import QUADRUPED, BodyPlan, chain, find_plan

FRONT, SIDE = {"F": "fore", "H": "hind"}, ("L", "R")


def test_a_quadruped_has_four_legs_and_the_routes_that_its_words_say():
    assert QUADRUPED.sites == ("FL", "FR", "HL", "HR")
    other = {"F": "H", "H": "F", "L": "R", "R": "L"}
    for leg in QUADRUPED.sites:
        girdle, side = leg
        assert QUADRUPED.routes["same"][leg] == leg
        assert QUADRUPED.routes["cross"][leg] == girdle + other[side]
        word = "down" if girdle == "F" else "up"  # from the forelegs to the hind legs is down the cord
        assert QUADRUPED.routes[f"side-{word}"][leg] == other[girdle] + side
        assert QUADRUPED.routes[f"diag-{word}"][leg] == other[girdle] + other[side]
        assert QUADRUPED.part_of(leg, "girdle") == FRONT[girdle]
        assert QUADRUPED.part_of(leg, "side") == side
        assert QUADRUPED.part_of(leg, "site") == leg
        assert QUADRUPED.part_of(leg, "body") == "body"
    assert sum(len(arrivals) for arrivals in QUADRUPED.routes.values()) == 4 + 4 + 4 * 2


@pytest.mark.parametrize("division", QUADRUPED.divisions)
def test_the_parts_of_a_division_are_where_its_sites_lie(division):
    parts = QUADRUPED.parts(division)
    assert {QUADRUPED.part_of(site, division) for site in QUADRUPED.sites} == set(parts)
    assert len(parts) == {"body": 1, "side": 2, "girdle": 2, "site": 4}[division]


def test_a_chain_runs_from_head_to_tail_and_back():
    plan = chain(4)
    assert plan.sites == ("s1", "s2", "s3", "s4")
    assert plan.routes["tailward"] == {"s1": "s2", "s2": "s3", "s3": "s4"}
    assert plan.routes["headward"] == {"s2": "s1", "s3": "s2", "s4": "s3"}
    assert plan.divisions == ("body", "site")
    assert chain(1).routes["tailward"] == {}


def test_plans_are_compared_by_value_and_found_by_name():
    assert chain(6) == chain(6) != chain(7)
    assert hash(chain(6)) == hash(chain(6))
    assert len({chain(6), chain(6), QUADRUPED}) == 2
    assert find_plan("quadruped") is QUADRUPED
    assert find_plan("chain-12") == chain(12)
    same_name = BodyPlan("chain-6", chain(6).sites, {}, {})
    assert same_name != chain(6)


@pytest.mark.parametrize("name", ["octopus", "chain-0", "chain-", "chain-9999"])
def test_unknown_plans_are_refused_with_the_valid_ones(name):
    with pytest.raises(UserError, match=f"unknown body plan '{name}'; valid: quadruped, chain-N"):
        find_plan(name)


def test_impossible_plans_and_divisions_are_refused():
    with pytest.raises(UserError, match="a chain needs at least one segment, not 0"):
        chain(0)
    with pytest.raises(UserError, match="unknown division of the body 'wing'; valid: body, side, girdle, site"):
        QUADRUPED.parts("wing")
