"""What times mean: message models, scaling, HPL, profiles, guidelines."""
