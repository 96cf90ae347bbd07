"""What other programs print of their runs, bounded, checked and cleaned."""
