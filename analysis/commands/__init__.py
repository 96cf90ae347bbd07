"""Commands of `python -m analysis`, a file for each family; `analysis/__main__.py` names them."""
