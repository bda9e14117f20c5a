"""What the program does against a plain reference or a device's peak, measured in one run."""
