"""Dead letters: which records are bad and why, where they leave, and how they are listed, shown and put back."""
