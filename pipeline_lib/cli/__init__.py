"""The command line ``polyview``: what a user does beside ``dvc repro``."""
