"""How the bytes of files and messages become rows, and rows bytes. One file per format."""
