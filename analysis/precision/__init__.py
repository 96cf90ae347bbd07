"""How much launches vary, and how many rounds a precision takes."""
