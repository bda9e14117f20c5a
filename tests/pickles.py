"""A pickle that does something when it is read back."""

import os


class Code:
    """Makes a folder when it is read back, if a pickle may say what is called."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)
