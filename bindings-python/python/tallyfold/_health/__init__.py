"""What explains a change, and what rules find."""
