"""Retrieval: exact ranks, recalls with intervals, pools, and single queries."""
