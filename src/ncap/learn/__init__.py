"""Learning: sees episodes and policies, never MuJoCo."""
