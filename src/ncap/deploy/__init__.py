"""Policies on a robot: messages, links, the safety layer, the control loop, and a simulated robot at the other end.

Nothing but `twin` (and `stepped`, which uses it) needs MuJoCo, so that the machine beside the robot does without.
"""
