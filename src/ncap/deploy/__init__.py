"""To the robot and back: messages, links, the safety layer, the control loop, and a simulated robot at the other end.

Everything but `twin` needs NumPy only, so that the machine beside the robot does not need MuJoCo.
"""
