"""One file per figure or table of the paper, and the searches behind our numbers."""
