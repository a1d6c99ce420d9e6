"""Ways to look at a policy: a live page, replays to keep, and videos."""

import ncap.sim  # noqa: F401 - chooses how MuJoCo draws, which must happen before MuJoCo is imported
