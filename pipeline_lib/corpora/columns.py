"""What a table of captions has: its columns, and the splits of its photos."""

COLUMNS = ("image", "split", "language", "annotation", "position", "text", "translation_of")

SPLITS = ("train", "val", "test")
