"""A trained model in the form of other tools: ONNX, sentence-transformers, vectors in Parquet."""
