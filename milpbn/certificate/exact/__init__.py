"""The exact checker of certificates: a second verifier, without rounding and without shortcuts."""
