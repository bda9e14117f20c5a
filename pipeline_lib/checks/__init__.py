"""What can be known of a study before its work: parameters against tables, folders and memory."""
