"""Search in a user's own photos: their index, queries, languages, and the page that serves it."""
