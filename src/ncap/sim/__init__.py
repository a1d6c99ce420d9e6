"""Bodies: robots, terrains, and the batched simulator that moves them. Knows nothing of policies.

`robot` and `a1` need NumPy only, so that a deployed policy does not load MuJoCo.
"""
