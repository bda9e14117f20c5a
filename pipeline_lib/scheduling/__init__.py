"""Work that falls into shards: who computes which, on one process or on a cluster."""
