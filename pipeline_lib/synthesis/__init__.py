"""Training data that nobody wrote for an image: pseudopairs and translations."""
