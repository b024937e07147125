"""Step 5, everything to evidence: what was done, provable later."""
