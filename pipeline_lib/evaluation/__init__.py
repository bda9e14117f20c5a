"""What embeddings are worth: ranks, retrieval scores and how sure we can be of them."""
