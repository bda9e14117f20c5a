"""What the program does against a plain reference, measured in one run, as ratios."""
